"""Task constraints: verdicts by hand, questions split by topic and by constraint, and checks that say what is asked."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtrain.settings.config import SFTConfig, TaskConfig
from llmtrain.tasks import constraints
from llmtrain.tasks.constraints import CATEGORIES, HELD_OUT, OPENINGS, TOPICS, TRAINED, WORDS, questions
from llmtrain.tasks.task_registry import generated_task

TASK = generated_task(TaskConfig(name="constraints", train_problems=700, test_problems=96))
BY_HAND = [
    ("Write a sentence of exactly 6 words about rain.", "Rain doesn't fall on dry days.", "Rain falls on dry days."),
    (
        "Write a sentence of at most 8 words about rain.",
        "Rain falls on us.",
        "Rain falls and falls and falls on all of us.",
    ),
    ("Write a sentence about rain that ends with the word 'home'.", 'It rains at "home".', "It rains at homes."),
    (
        "Write a sentence about rain that begins with the word 'When'.",
        '"When it rains, sing."',
        "Whenever it rains, I sing.",
    ),
    ("Write a sentence about rain that uses the words 'old' and 'sky'.", "The SKY is old.", "The sky is golden."),
    ("Write a sentence about rain without the letter 'w'.", "Rain is cold today.", "Rain is Wet today."),
    ("List exactly three sports, separated by commas.", "Tennis, table tennis, chess.", "Tennis, chess, tennis"),
    ("Write a sentence of 6 to 9 words about rain.", "Rain falls on all of the people.", "Rain falls on us."),
    ("Write a sentence about rain without the word 'the'.", "Then other rain falls.", "The rain falls down."),
    ("Write one question about rain, of at most 15 words.", "Why does it rain?", "It rains all day."),
    (
        "Write a sentence about rain that begins with 'My' and uses the word 'sun'.",
        "My sun has set.",
        "My sunshine has set.",
    ),
]


def asked(text: str):
    """Return the question with this text, whatever its topic: the checks depend on the rest alone."""
    rng = random.Random(0)
    for _ in range(20000):
        for kind in (TRAINED | HELD_OUT).values():
            [question] = questions({"one": kind}, (["rain"], ["sports"]), 1, rng)
            if question.text == text:
                return question
    raise AssertionError(text)


@pytest.mark.parametrize(("text", "right", "wrong"), BY_HAND)
def test_by_hand(text, right, wrong):
    question = asked(text)
    said = [right, wrong, "", "  ", f"{right} {right}"]
    verdicts = [verdict.correct for verdict in TASK.verify([question] * len(said), said)]
    assert verdicts == [True, False, False, False, False]


SIX, THREE = BY_HAND[0][0], BY_HAND[6][0]
AS_READ = [
    (SIX, "The rain-soaked fields glistened last night.", True),
    (SIX, "It rains for 3.5 hours daily.", True),
    (SIX, "It rained for 1,000 hours then.", True),
    (SIX, "Rain in the U.S. is cold.", True),
    (SIX, "It rains at 5 p.m. today.", True),
    (SIX, "It rains at 10:30 every day.", True),
    (SIX, "Dr. Smith loves the cold rain.", True),
    (SIX, "My friend J. Hall loves rain.", True),
    (SIX, "**Rain doesn't fall on dry days.**", True),
    (SIX, "Rain doesn\u2019t fall on dry days.", True),
    (SIX, "Rain falls, then the sun\u2014always!", True),
    (SIX, "Rain fell soft\u00adly all last night.", True),
    (SIX, "Rain fell soft\u200bly last night.", False),
    (SIX, "1 2 3 4 5 6.", False),
    (SIX, "Rain falls. So do I. Rain falls.", False),
    (SIX, "Rain falls here! Rain falls there.", False),
    (THREE, "Tennis, chess and golf", True),
    (THREE, "Tennis, chess, and golf.", True),
    (THREE, "Tennis, chess, or table tennis", True),
    (THREE, "1. Tennis, 2. chess, 3. golf", True),
    (THREE, "Tennis, chess, golf and rugby", False),
    (THREE, "Tennis, chess, golf & rugby", False),
    (THREE, "Tennis, chess, golf; rugby", False),
    (THREE, "Tennis, chess, golf/rugby", False),
    (THREE, "Tennis, chess, golf\nrugby", False),
    (THREE, "Tennis, chess, golf. Rugby", False),
    (THREE, "Tennis, chess, and tennis", False),
    (THREE, "Tennis, chess, the chess", False),
    (THREE, "Tennis; chess; golf", False),
    (THREE, "Tennis\nchess\ngolf", False),
    (THREE, "Three sports: tennis, chess, golf", True),
    (THREE, "Three sports: tennis, chess", False),
    ("Write a sentence about rain without the letter 'w'.", "Rain is \uff57et today.", False),
    ("Write a sentence about rain without the letter 'w'.", "R\u0430in is cold today.", False),
    ("Write a sentence about rain without the letter 'w'.", "Rain at the caf\u00e9 is cold.", True),
    ("Write a sentence about rain without the word 'the'.", "T\u200bhe rain falls down.", False),
    ("Write one question about rain, of at most 15 words.", "**Does the rain follow us home?**", True),
]
"""Answers as a person reads them, and whether they are right."""


@pytest.mark.parametrize(("text", "answer", "right"), AS_READ)
def test_words_sentences_and_lists_are_those_that_a_person_reads(text, answer, right):
    [verdict] = TASK.verify([asked(text)], [answer])
    assert verdict.correct == right, verdict.reason


def test_an_opening_is_a_whole_word():
    text = next(q.text for q in TASK.train[0] if "begins with the word 'In'" in q.text)
    question = next(q for q in TASK.train[0] if q.text == text)
    verdicts = TASK.verify([question] * 2, ["In-laws love the rain.", "In spring it rains."])
    assert [verdict.correct for verdict in verdicts] == [False, True]


def test_all_kinds_are_judged_by_hand():
    kinds = {re.sub(r"\d+|'[^']+'|three|four|five", "_", text) for text, _, _ in BY_HAND}
    assert len(kinds) == len(TRAINED | HELD_OUT)


def test_held_out_questions_have_other_topics_and_half_of_them_other_constraints():
    def about(question):
        found = re.search(r"about (\w+)|exactly (?:two|three|four|five|six) (.+), separated", question.text)
        return found[1] or found[2]

    [train] = TASK.train
    new_topics = [q for q in TASK.test if q.source == "new topics"]
    new_constraints = [q for q in TASK.test if q.source == "new constraints"]
    assert len(new_topics) == len(new_constraints) == 48
    assert not {about(q) for q in train} & {about(q) for q in TASK.test}
    assert {about(q) for q in train} <= {*TOPICS, *CATEGORIES}
    shape = {name: {_shape(q.text) for q in some} for name, some in (("train", train), ("new", new_constraints))}
    assert not shape["train"] & shape["new"]
    assert {_shape(q.text) for q in new_topics} <= shape["train"]
    assert len({q.text for q in [*train, *TASK.test]}) == 796


def _shape(text: str) -> str:
    """Return a question without topic, numbers and words."""
    text = re.sub(r"about \w+", "about _", text)
    return re.sub(r"\d+|'[^']+'|(two|three|four|five|six) [^,]+", "_", text)


def test_questions_are_a_function_of_the_configuration():
    again = generated_task(TaskConfig(name="constraints", train_problems=700, test_problems=96))
    other = generated_task(TaskConfig(name="constraints", train_problems=700, test_problems=96, seed=1))
    assert again.train == TASK.train
    assert again.test == TASK.test
    assert other.test != TASK.test


@given(st.sampled_from(WORDS), st.sampled_from(OPENINGS), st.integers(1, 14))
def test_what_is_asked_for_is_taken(word, opening, n):
    """A sentence made for an instruction is right; without its word, or with one word more, it is wrong."""
    sentence = f"{opening} {'la ' * (n - 1)}{word}."
    assert constraints.first(sentence, opening.lower())
    assert constraints.last(sentence, word)
    assert constraints.count(sentence, n + 1, n + 1)
    assert not constraints.count(f"la {sentence}", n + 1, n + 1)
    assert not constraints.last(f"{sentence[:-1]}ly.", word)


def test_a_sentence_in_quotation_marks_is_one():
    assert constraints.one_sentence('"It rains at 3.5 degrees."')
    assert constraints.one_sentence("It rains on us")
    assert not constraints.one_sentence("It rains on us. It pours on them.")
    assert not constraints.one_sentence("Most")
    assert not constraints.one_sentence("Rain rain rain rain rain.")
    assert not constraints.one_sentence(" ... ")


def test_refusals():
    with pytest.raises(ValueError, match=r"set task\.train_problems lower"):
        generated_task(TaskConfig(name="constraints", train_problems=3000, test_problems=2))
    with pytest.raises(ValueError, match=r"sft\.steps to 0"):
        TASK.examples(SFTConfig(steps=1))


@pytest.mark.parametrize("mark", [".", "!", "...", "?!"])
def test_a_row_of_marks_is_judged_at_once(mark):
    """Each of them was looked at as the first one of an end, so that 30,000 took ten seconds and more take hours."""
    truth = {"instruction_id_list": ["words:one_sentence"], "kwargs": [{}]}
    assert not constraints.judged(mark * 1_000_000 + "x", truth).correct
