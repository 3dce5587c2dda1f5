"""IF-Eval: instructions that a program can check, by their published names (Zhou et al., arXiv 2311.07911).

    check("no comma here", {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]})

A response is right if it follows all of its instructions (prompt level, strict). Meanings follow
google-research/instruction_following_eval, with these exceptions:

- Sentences are split at `.`, `!` and `?`; words are runs of letters, digits and underscores.
- Keywords, markers and splitters are plain text, not regular expressions: C does not stand for C++.
- Blank lines make no paragraph of their own.
- NaN and Infinity are no JSON.
- A question about a language is refused unless the package langdetect is installed.
"""

import json
import re
from ast import literal_eval
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from math import inf
from typing import Any, get_type_hints

from .verdict import Verdict

OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
"""Answers that constrained_response allows."""
OF_A_LANGUAGE = ("language:response_language", "change_case:english_capital", "change_case:english_lowercase")
"""Instructions that need langdetect."""
RELATIONS = ("less than", "at least")
KINDS = {
    int: "a whole number above 0",
    str: "a text that is not blank",
    list[str]: "a list of texts that are not blank",
}
RULES: dict[str, Callable[..., bool]] = {}
"""Checks by name of the instruction; they take the response and the instruction's arguments."""


def check(response: str, ground_truth: Any, rules: Mapping[str, Callable[..., bool]] = RULES) -> Verdict:
    """Return the verdict on a response. Raises ValueError for a ground truth that names no instruction of `rules`."""
    names, arguments = instructions(ground_truth, rules)
    for name, given in zip(names, arguments, strict=True):
        if not response.strip() or not rules[name](response, **given):
            return Verdict(False, f"does not follow {name}", "")
    return Verdict(True, "follows all instructions", "")


def instructions(
    ground_truth: Any, rules: Mapping[str, Callable[..., bool]] = RULES
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return names and arguments of the instructions; 3.0, which a table makes of 3, is a whole number.

    ground_truth: an object with `instruction_id_list` and `kwargs`; or a list of one object, whose names are called
    `instruction_id` (IF-Multi-Constraints); or either as text, in JSON or as Python prints it.
    Raises ValueError in one line if they cannot be checked.
    """
    found = _parsed(ground_truth) if isinstance(ground_truth, str) else ground_truth
    found = found[0] if isinstance(found, list) and len(found) == 1 else found
    found = found if isinstance(found, Mapping) else {}
    names, arguments = found.get("instruction_id_list", found.get("instruction_id")), found.get("kwargs")
    if not isinstance(names, list) or not isinstance(arguments, list) or not names or len(names) != len(arguments):
        raise ValueError("the ground truth of ifeval is an object with equally long instruction_id_list and kwargs")
    if not all(one is None or isinstance(one, Mapping) for one in arguments):
        raise ValueError("the kwargs of ifeval are objects, one for each instruction")
    if unknown := [name for name in names if not isinstance(name, str) or name not in rules]:
        raise ValueError(f"unknown instruction {unknown[0]!r}; IF-Eval has {', '.join(rules)}")
    if (spoken := [name for name in names if name in OF_A_LANGUAGE]) and not find_spec("langdetect"):
        raise ValueError(f"{spoken[0]} needs a package: pip install langdetect")
    given = [{key: value for key, value in (one or {}).items() if value is not None} for one in arguments]
    return names, [_fitting(name, rules[name], some) for name, some in zip(names, given, strict=True)]


def _parsed(text: str) -> Any:
    """Return the object that a text says, in JSON or as Python prints it; None if it says none."""
    for parse in (json.loads, literal_eval):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return parse(text)
    return None


def _fitting(name: str, rule: Callable[..., bool], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a rule. Raises ValueError if one is missing, unknown, of another kind or empty."""
    kinds = _kinds(rule)
    for key in [*kinds, *given]:
        if key not in given or key not in kinds:
            raise ValueError(f"{name} takes {', '.join(kinds) or 'no argument'}; its kwargs have {', '.join(given)}")
    found = {key: int(value) if type(value) is float and value.is_integer() else value for key, value in given.items()}
    for key, value in found.items():
        if not _is(kinds[key], value):
            raise ValueError(f"{name}: {key} is {KINDS[kinds[key]]}, not {value!r}")
        if key.endswith("relation") and value not in RELATIONS:
            raise ValueError(f"{name}: {key} is {' or '.join(map(repr, RELATIONS))}, not {value!r}")
    if len(str(found.get("letter", "x")).strip()) != 1:
        raise ValueError(f"{name}: letter is a single one, not {found['letter']!r}")
    if found.get("nth_paragraph", 0) > found.get("num_paragraphs", inf):
        raise ValueError(f"{name}: nth_paragraph is {found['nth_paragraph']} of {found['num_paragraphs']} paragraphs")
    return found


def _is(kind: Any, value: Any) -> bool:
    """Return True if a value is of a kind and asks for something: numbers above 0, and texts that are not blank."""
    if kind is int:
        return type(value) is int and value > 0
    texts = [value] if kind is str else value
    return isinstance(texts, list) and bool(texts) and all(isinstance(text, str) and text.strip() for text in texts)


@cache
def _kinds(rule: Callable[..., bool]) -> dict[str, Any]:
    """Return the kind of each argument of a rule but the first, the text."""
    return {key: kind for key, kind in [*get_type_hints(rule).items()][1:] if key != "return"}


def rule(name: str) -> Callable[[Callable[..., bool]], Callable[..., bool]]:
    """Return a decorator that enters a check under the name of its instruction."""

    def enter(function: Callable[..., bool]) -> Callable[..., bool]:
        RULES[name] = function
        return function

    return enter


def enough(count: int, wanted: int, relation: str) -> bool:
    """Return True if a count is `at least` or `less than` the wanted one, as the relation says."""
    return count < wanted if relation == "less than" else count >= wanted


def speaks(text: str, language: str) -> bool:
    """Return True if a text is in a language, or if none can be detected."""
    import langdetect

    langdetect.DetectorFactory.seed = 0  # its result is drawn otherwise
    try:
        return bool(langdetect.detect(text) == language)
    except langdetect.LangDetectException:
        return True


def parts(text: str, mark: str) -> list[str] | None:
    """Return the parts between marks, without empty ones at the ends; None if one in between is empty."""
    found = [part.strip() for part in text.split(mark)]
    found = found[not found[0] : len(found) - (len(found) > 1 and not found[-1])]
    return found if all(found) else None


def times(word: str, text: str, whole: bool = False) -> int:
    """Return how often a text has a word, capital or not; whole: only where no letter, digit or _ is beside it."""
    plain = re.escape(word.strip())
    return len(re.findall(rf"(?<!\w){plain}(?!\w)" if whole else plain, text, re.IGNORECASE))


@rule("keywords:existence")
def _(text: str, keywords: list[str]) -> bool:
    return all(times(word, text) for word in keywords)


@rule("keywords:frequency")
def _(text: str, keyword: str, frequency: int, relation: str) -> bool:
    return enough(times(keyword, text), frequency, relation)


@rule("keywords:forbidden_words")
def _(text: str, forbidden_words: list[str]) -> bool:
    return not any(times(word, text, whole=True) for word in forbidden_words)


@rule("keywords:letter_frequency")
def _(text: str, letter: str, let_frequency: int, let_relation: str) -> bool:
    return enough(text.lower().count(letter.strip().lower()), let_frequency, let_relation)


@rule("language:response_language")
def _(text: str, language: str) -> bool:
    return speaks(text, language)


@rule("length_constraints:number_sentences")
def _(text: str, num_sentences: int, relation: str) -> bool:
    found = re.findall(r"[^.!?\s][^.!?]*(?:[.!?]+|$)", text)
    return enough(len(found), num_sentences, relation)


@rule("length_constraints:number_paragraphs")
def _(text: str, num_paragraphs: int) -> bool:
    found = parts(text, "***")
    return found is not None and len(found) == num_paragraphs


@rule("length_constraints:number_words")
def _(text: str, num_words: int, relation: str) -> bool:
    return enough(len(re.findall(r"\w+", text)), num_words, relation)


@rule("length_constraints:nth_paragraph_first_word")
def _(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    found = re.split(r"\n\s*\n", text.strip())
    if len(found) != num_paragraphs:
        return False
    first = found[nth_paragraph - 1].split()[0]
    return re.split(r"[.,?!'\"]", first.lstrip("'\""))[0].lower() == first_word.strip().lower()


@rule("detectable_content:number_placeholders")
def _(text: str, num_placeholders: int) -> bool:
    closed = (part for line in text.split("\n") for part in line.split("]")[:-1])
    return sum("[" in part for part in closed) >= num_placeholders


@rule("detectable_content:postscript")
def _(text: str, postscript_marker: str) -> bool:
    marker = postscript_marker.strip().lower()
    spaced = {"p.p.s": r"p\.\s?p\.\s?s", "p.s.": r"p\.\s?s\."}.get(marker, re.escape(marker))
    return re.search(spaced, text.lower()) is not None


@rule("detectable_format:number_bullet_lists")
def _(text: str, num_bullets: int) -> bool:
    return sum(re.match(r"\*[^*]|-", line.lstrip()) is not None for line in text.split("\n")) == num_bullets


@rule("detectable_format:constrained_response")
def _(text: str) -> bool:
    return any(option in text for option in OPTIONS)


@rule("detectable_format:number_highlighted_sections")
def _(text: str, num_highlights: int) -> bool:
    found = [*re.findall(r"\*([^\n*]*)\*", text), *re.findall(r"\*\*([^\n*]*)\*\*", text)]
    return sum(bool(inside.strip()) for inside in found) >= num_highlights


@rule("detectable_format:multiple_sections")
def _(text: str, section_spliter: str, num_sections: int) -> bool:
    return len(re.findall(rf"{re.escape(section_spliter.strip())}\s?\d+", text)) >= num_sections


@rule("detectable_format:json_format")
def _(text: str) -> bool:
    bare = re.sub(r"^```(?:json)?|```$", "", text.strip(), flags=re.IGNORECASE)
    try:
        json.loads(bare, parse_int=str, parse_float=str, parse_constant=_refused)
    except (ValueError, RecursionError):
        return False
    return True


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


@rule("detectable_format:title")
def _(text: str) -> bool:
    lines = (line[line.find("<<") : line.rfind(">>")] for line in text.split("\n") if "<<" in line and ">>" in line)
    return any(title.lstrip("<").rstrip(">").strip() for title in lines)


@rule("combination:two_responses")
def _(text: str) -> bool:
    found = parts(text, "******")
    return found is not None and len(found) == 2 and found[0] != found[1]


@rule("combination:repeat_prompt")
def _(text: str, prompt_to_repeat: str) -> bool:
    return text.strip().lower().startswith(prompt_to_repeat.strip().lower())


@rule("startend:end_checker")
def _(text: str, end_phrase: str) -> bool:
    return text.strip().strip('"').lower().endswith(end_phrase.strip().lower())


@rule("startend:quotation")
def _(text: str) -> bool:
    return re.fullmatch(r'\s*".*"\s*', text, re.DOTALL) is not None


@rule("change_case:capital_word_frequency")
def _(text: str, capital_frequency: int, capital_relation: str) -> bool:
    words = re.findall(r"\w[\w'’-]*", text)
    return enough(sum(word.isupper() for word in words), capital_frequency, capital_relation)


@rule("change_case:english_capital")
def _(text: str) -> bool:
    return text.isupper() and speaks(text, "en")


@rule("change_case:english_lowercase")
def _(text: str) -> bool:
    return text.islower() and speaks(text, "en")


@rule("punctuation:no_comma")
def _(text: str) -> bool:
    return "," not in text
