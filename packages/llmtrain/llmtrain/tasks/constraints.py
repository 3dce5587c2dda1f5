"""Short instructions that a program can check: a topic, and a constraint on the words of one sentence or list.

    Write a sentence of exactly 6 words about rain.      List exactly four sports, separated by commas.

A small chat model as published, uncertain and sometimes right, can be asked for them without a warm-up. Held-out
questions are about topics that no training question has. Half of them, source `new topics`, have the constraints of
training; the other half, source `new constraints`, have constraints of HELD_OUT, which no training question has.
A check sees the words alone: sense and topic are measured by benchmarks/pretrained_sense.py, not rewarded.
"""

import random
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import yaml

from ..data import Question
from ..settings.config import SFTConfig, TaskConfig
from ..verifiers import Verifier
from ..verifiers.direct import DirectVerifier
from ..verifiers.if_eval import RULES, check
from ..verifiers.verdict import Verdict
from .task import Examples, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
Check = tuple[str, dict[str, Any]]
"""Name of a rule, and its arguments."""
Constraint = tuple[str, list[Check]]
"""Instruction with the place {topic} or {category}, and its checks."""
ONE_SENTENCE: Check = ("words:one_sentence", {})
MAX_REPEATS = 1000
"""Draws without a new question after which a kind counts as exhausted."""
FEWEST_WORDS = 4
"""Different words that a sentence has at least."""
LONGEST_ITEM = 3
"""Words that an item of a list may have."""
WORD = re.compile(r"\w+(?:(?:['’-]|(?<=\d)[.,:](?=\d)|(?<=\b\w)\.(?=\w\b))\w+)*")
NOT_NAMED = r"(?<!\b[A-HJ-Za-z])(?<!\b[DMS][rst])(?<!\bMrs)"
END = re.compile(rf"(?<![.!?])(?:{NOT_NAMED}|(?=[.!?]{{2}}))[.!?]+(?=[\s\"'”’)]|$)")
"""End of a sentence; no initial and no title, as in "Dr. J. Hall". Only the first of several marks is looked at."""
BETWEEN = re.compile(rf"[,;/&\n]|{END.pattern}|\b(?:and|or)\b", re.IGNORECASE)
BESIDE_ITEMS = re.compile(r"\A[^,:]*:|(?<!\S)\d[.)]\s+")
"""Words before a list, and numbers of items, as in "Planets: 1. Mars, 2. Venus"."""
ARTICLES = ("the", "a", "an")
FOREIGN = re.compile("[^\\W\\d_\u0000-\u024f]")
"""Letter that is not Latin, such as a Cyrillic one that looks like it."""


def constraints_task(config: TaskConfig) -> Task:
    """Return the task. No question occurs twice; they are functions of the configuration alone.

    Raises:
        ValueError: if there are not so many different questions.
    """
    rng = random.Random(config.seed)
    both = [rng.sample(some, len(some)) for some in (TOPICS, CATEGORIES)]
    held_out, trained = zip(*((some[: len(some) // 4], some[len(some) // 4 :]) for some in both), strict=True)
    half = config.test_problems // 2
    train = questions(TRAINED, trained, config.train_problems, rng)
    test = questions(TRAINED, held_out, config.test_problems - half, rng, "new topics")
    test += questions(HELD_OUT, held_out, half, rng, "new constraints")

    def examples(asked: Sequence[Sequence[Question]], sft: SFTConfig) -> Examples:
        if not sft.steps:
            return []
        raise ValueError("task constraints has no worked answers for a warm-up: set model.path, and sft.steps to 0")

    def tokenizer(vocab_size: int) -> "PreTrainedTokenizerFast":
        from ..policy.tokenizer import build_bpe_tokenizer

        return build_bpe_tokenizer((question.text for question in train), vocab_size)

    def verifier() -> Verifier:
        return DirectVerifier(judged)

    return Task([train], test, verifier, examples, tokenizer)


def questions(
    kinds: Mapping[str, Callable[[random.Random], Constraint]],
    about: Sequence[Sequence[str]],
    count: int,
    rng: random.Random,
    source: str = "constraints",
) -> list[Question]:
    """Return `count` different questions of these kinds, in turn; about: topics, and categories of things to list.

    Raises ValueError if there are not so many.
    """
    topics, categories = about
    found: dict[str, Question] = {}
    for name in islice(cycle(kinds), count):
        for _ in range(MAX_REPEATS):
            template, checks = kinds[name](rng)
            text = template.format(topic=rng.choice(topics), category=rng.choice(categories))
            if text not in found:
                break
        else:
            raise ValueError(f"there are not {count:,} different questions: set task.train_problems lower")
        checks = checks if template.startswith("List") else [*checks, ONE_SENTENCE]
        truth = {"instruction_id_list": [name for name, _ in checks], "kwargs": [given for _, given in checks]}
        found[text] = Question(({"role": "user", "content": text},), truth, source=source)
    return list(found.values())


def judged(response: str, truth: Any) -> Verdict:
    """Return the verdict on a response, in Latin letters; see `if_eval.check`."""
    text = plain(response)
    if foreign := FOREIGN.search(text):
        return Verdict(False, f"has the letter {foreign[0]!r}, which is not Latin", "")
    return check(text, truth, ALL_RULES)


def plain(text: str) -> str:
    """Return a text as one reads it: compatible characters as one, none that are invisible, no marks around all."""
    seen = (each for each in unicodedata.normalize("NFKC", text) if unicodedata.category(each) != "Cf")
    return "".join(seen).strip("*_` \n")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case: rain-soaked, don't, 3.5, 10:30 and U.S are one word each."""
    return WORD.findall(text.lower())


def first(text: str, word: str) -> bool:
    return words(text)[:1] == [word]


def last(text: str, word: str) -> bool:
    return words(text)[-1:] == [word]


def using(text: str, used: list[str]) -> bool:
    return set(used) <= set(words(text))


def count(text: str, low: int, high: int) -> bool:
    return low <= len(words(text)) <= high


def one_sentence(text: str) -> bool:
    """Return True if a text is one sentence, of at least FEWEST_WORDS different words with a letter, in quotation marks
    or not.

    "Dr. Hall measured 3.5 degrees." is one. Without the lower limit "Most." would be a sentence that begins with Most.
    """
    spelt = {word for word in words(text) if re.search("[a-z]", word)}
    return sum(bool(words(part)) for part in END.split(text)) == 1 and len(spelt) >= FEWEST_WORDS


def items(text: str, number: int) -> bool:
    """Return True if a text is a list of so many different items, of 1 to LONGEST_ITEM words each, between commas.

    The last one may follow "and". Items between other signs count, but are not separated by commas.
    """
    parts = [words(part) for part in BETWEEN.split(BESIDE_ITEMS.sub("", text))]
    found = [tuple(word for word in part if word not in ARTICLES) for part in parts if part]
    separated = text.count(",") >= max(1, number - 2)
    return separated and len({*found}) == len(found) == number and all(0 < len(item) <= LONGEST_ITEM for item in found)


ALL_RULES: dict[str, Callable[..., bool]] = RULES | {
    "words:first": first,
    "words:last": last,
    "words:using": using,
    "words:count": count,
    "words:items": items,
    "words:one_sentence": one_sentence,
}
"""Checks of IF-Eval, and those of whole words, which IF-Eval does not have."""


def exactly(rng: random.Random) -> Constraint:
    n = rng.randrange(5, 15)
    return f"Write a sentence of exactly {n} words about {{topic}}.", [("words:count", {"low": n, "high": n})]


def at_most(rng: random.Random) -> Constraint:
    n = rng.randrange(8, 16)
    return f"Write a sentence of at most {n} words about {{topic}}.", [("words:count", {"low": 1, "high": n})]


def ends(rng: random.Random) -> Constraint:
    word = rng.choice(WORDS)
    return f"Write a sentence about {{topic}} that ends with the word '{word}'.", [("words:last", {"word": word})]


def begins(rng: random.Random) -> Constraint:
    word = rng.choice(OPENINGS)
    text = f"Write a sentence about {{topic}} that begins with the word '{word}'."
    return text, [("words:first", {"word": word.lower()})]


def uses(rng: random.Random) -> Constraint:
    a, b = rng.sample(WORDS, 2)
    return f"Write a sentence about {{topic}} that uses the words '{a}' and '{b}'.", [("words:using", {"used": [a, b]})]


def without_letter(rng: random.Random) -> Constraint:
    letter = rng.choice("bcdfghmpuwy")
    given = {"letter": letter, "let_frequency": 1, "let_relation": "less than"}
    return f"Write a sentence about {{topic}} without the letter '{letter}'.", [("keywords:letter_frequency", given)]


def lists(rng: random.Random) -> Constraint:
    n = rng.choice(tuple(NUMBERS))
    return f"List exactly {NUMBERS[n]} {{category}}, separated by commas.", [("words:items", {"number": n})]


def between(rng: random.Random) -> Constraint:
    n = rng.randrange(6, 13)
    return f"Write a sentence of {n} to {n + 3} words about {{topic}}.", [("words:count", {"low": n, "high": n + 3})]


def without_word(rng: random.Random) -> Constraint:
    word = rng.choice(("the", "a", "is", "and", "of"))
    checks = [("keywords:forbidden_words", {"forbidden_words": [word]})]
    return f"Write a sentence about {{topic}} without the word '{word}'.", checks


def question(rng: random.Random) -> Constraint:
    return "Write one question about {topic}, of at most 15 words.", [
        ("startend:end_checker", {"end_phrase": "?"}),
        ("words:count", {"low": 1, "high": 15}),
    ]


def begins_and_uses(rng: random.Random) -> Constraint:
    opening, word = rng.choice(OPENINGS), rng.choice(WORDS)
    text = f"Write a sentence about {{topic}} that begins with '{opening}' and uses the word '{word}'."
    return text, [("words:first", {"word": opening.lower()}), ("words:using", {"used": [word]})]


TRAINED = {kind.__name__: kind for kind in (exactly, at_most, ends, begins, uses, without_letter, lists)}
"""Constraints of training, and of the held-out questions about new topics."""
HELD_OUT = {kind.__name__: kind for kind in (between, without_word, question, begins_and_uses)}
"""Constraints of held-out questions alone."""
_LISTS = yaml.safe_load(files(__package__).joinpath("constraint_words.yaml").read_text(encoding="utf-8"))
TOPICS: list[str] = _LISTS["topics"]
CATEGORIES: list[str] = _LISTS["categories"]
"""Things to list. A quarter of topics and categories are of held-out questions, the others of training."""
WORDS: list[str] = _LISTS["words"]
"""Words to use and to end with."""
OPENINGS: list[str] = _LISTS["openings"]
"""Words to begin with."""
