"""Numbers beside what a question asks for."""

import pytest

from llmtrain.verifiers.math.asked_number import asked_number

CANS, MINUTES = (
    "Each pack has 6 cans. How many cans can Joe buy with $20?",
    "How many minutes does it take to fill the tank?",
)


@pytest.mark.parametrize(
    ("response", "question", "number"),
    [
        ("He can buy 30 cans with $20.", CANS, "30"),
        ("He can buy **30 cans** (5 packs).", CANS, "30"),
        ("6 cans/pack * 5 packs = 30 cans in 5 packs", CANS, "30"),
        ("It takes 15 minutes to fill the 60 liter tank.", MINUTES, "15"),
        ("It is 300/60 = <<300/60=5>>5 hours for 300 km.", "How long is the trip in hours?", "5"),
        ("He can buy 30 cans.", CANS, None),  # the last number: for last_statement.py
        ("He can buy 30 cans of 6 cans a pack.", CANS, None),
        ("He can buy 30 cans more than 5 friends.", CANS, None),
        ("He cannot buy 30 cans with $20.", CANS, None),
        ("He buys 12 cans in May and 18 in June.", CANS, None),
        ("6 + 24 cans with $20.", CANS, None),
        ("He can buy 5 packs with $20.", CANS, None),
        ("He can buy 30 cans with $20.", "How much does it cost?", None),
        ("He can buy 30 cans with $20.", "", None),
    ],
)
def test_the_only_number_that_counts_what_is_asked_for(response, question, number):
    assert asked_number(response, question) == number


def test_with_a_question_a_sentence_may_go_on(math):
    told = ["The train travels 300 miles in 5 hours."] * 2
    questions = ["How many miles does it travel in 5 hours?"] * 2
    assert [v.correct for v in math(told, ["300", "5"], prompts=questions)] == [True, False]
    assert not any(v.correct for v in math(told, ["300", "5"]))
