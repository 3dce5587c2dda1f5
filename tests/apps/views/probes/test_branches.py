import pytest

from entrostat_app.views.probes.answers import Brief, Name
from entrostat_app.views.probes.branches import CHOSEN, END, branches, fate, parting, picture, shares

TEXTS = {
    0: {Name(0, 0): ("1", "+", "2"), Name(0, 1): ("1", "-"), Name(1, 0): ("1", "+")},
    10: {Name(0, 0): ("1", "-", "2"), Name(0, 1): ("1", "-")},
    20: {Name(0, 0): ("1", "-", "2"), Name(0, 1): ("1",)},
}
STEPS = {step: {name: Brief(tokens) for name, tokens in found.items()} for step, found in TEXTS.items()}


@pytest.mark.parametrize(
    ("one", "other", "at"), [("ab", "ab", None), ("ab", "ac", 1), ("ab", "a", 1), ("b", "a", 0), ("", "", None)]
)
def test_answers_part_at_the_first_token_that_differs(one, other, at):
    assert parting(tuple(one), list(other)) == at
    assert parting(tuple(other), list(one)) == at


def test_a_branch_is_the_common_beginning_and_a_token():
    a, b = branches(("1", "+", "2"), ("1",), 1)
    assert (a.prefix, a.token, b.token) == (("1",), "+", END)
    answers = [("1", "+"), ("1",), ("2", "+"), ("1", "+", "2")]
    assert [a.takes(tokens) for tokens in answers] == [True, False, False, True]
    assert [b.takes(tokens) for tokens in answers] == [False, True, False, False]


def test_shares_count_the_answers_to_one_question():
    plus, minus = branches(("1", "+", "2"), ("1", "-", "2"), 1)
    assert shares(STEPS, 0, plus) == {0: (1, 2), 10: (0, 2), 20: (0, 2)}
    assert shares(STEPS, 0, minus) == {0: (1, 2), 10: (2, 2), 20: (1, 2)}
    assert shares(STEPS, 1, plus) == {0: (1, 1), 10: (0, 0), 20: (0, 0)}


@pytest.mark.parametrize(
    ("counts", "step", "words"),
    [
        ({0: (1, 2), 10: (0, 2), 20: (0, 2)}, 20, "died: last taken at step 0"),
        ({0: (1, 2), 10: (0, 2), 20: (1, 2)}, 10, "died: last taken at step 0, and comes back at step 20"),
        ({0: (0, 2), 10: (2, 2)}, 10, "taken by 2 of 2 answers at step 10"),
        ({0: (0, 2), 10: (2, 2)}, 0, "not taken until step 10"),
        ({0: (0, 2)}, 0, "never taken"),
    ],
)
def test_the_fate_of_a_branch(counts, step, words):
    assert fate(counts, step) == words


def test_the_picture_holds_shares_and_the_chosen_step():
    drawn = picture({"branch A": {0: (1, 2), 10: (0, 2)}, "branch B": {0: (1, 2), 10: (0, 0)}}, 10)
    lines = drawn.frame[drawn.frame["series"] != CHOSEN]
    assert lines[lines["series"] == "branch A"]["value"].tolist() == [0.5, 0.0]
    assert lines[lines["series"] == "branch B"]["value"].isna().tolist() == [False, True]
    assert drawn.frame[drawn.frame["series"] == CHOSEN]["x"].tolist() == [10]
