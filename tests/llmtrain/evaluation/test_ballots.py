"""Equal and different answers in a vote."""

from llmtrain.evaluation.outcomes import ABSTAINED
from llmtrain.evaluation.records import ballot, votes
from llmtrain.verifiers.verdict import Verdict


def said(*answers):
    return [Verdict(False, "", answer) for answer in answers]


def test_equal_numbers_and_texts_are_one_answer():
    assert len({ballot(x) for x in ("42", "42.0", "$42$", r"\frac{84}{2}")}) == 1
    assert ballot(r"\dfrac{\pi}{2}") == ballot(r" \frac{\pi}{2}.")
    assert ballot("x+1") != ballot("1+x")


def test_votes_are_numbered_and_abstentions_stand_out():
    found = votes(said("7", None, "8", "8.0", "7", None), ["r"] * 6, 3)
    assert found.shape == (2, 3)
    a, nobody, b, b2, a2, nobody2 = found.ravel()
    assert (a, b) == (a2, b2)
    assert a != b
    assert nobody == nobody2 == ABSTAINED


def test_where_no_answer_is_named_the_response_is_the_answer():
    found = votes(said(None, None, None), ["1+2", "2+1", "1+2"], 3)[0]
    assert found[0] == found[2] != found[1]


def test_an_answer_of_any_length_gets_a_number():
    assert votes(said("9" * 100_000, "9" * 100_000, "x" * 100_000), [""] * 3, 3)[0].tolist() == [0, 0, 1]
