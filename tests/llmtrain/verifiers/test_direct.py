"""Exact text, regular expressions and Countdown."""

from math import inf

import pytest

from llmtrain.verifiers import get_verifier, regex
from llmtrain.verifiers.countdown import MAX_RESPONSE_CHARS
from llmtrain.verifiers.direct import exact


def test_exact():
    with get_verifier("exact") as verify:
        verdicts = verify([" yes\n", "Yes", "yes."], ["yes"] * 3)
        assert [v.correct for v in verdicts] == [True, False, False]
        assert [v.reason for v in verdicts] == ["equal", "not equal", "not equal"]
        assert verify.failures == {}
        assert verify(["5"], [5])[0].correct
        with pytest.raises(ValueError, match="2 responses for 1"):
            verify(["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("truth", "right"), [(5.0, "5"), (5.0, "5.0"), (0.5, "0.5"), (-3, "-3"), (1e20, "100000000000000000000")]
)
def test_exact_numbers(truth, right):
    assert exact(right, truth).correct
    assert not exact("6", truth).correct


@pytest.mark.parametrize("truth", [[1, 2], {"a": 1}, True, None, ["5"]])
def test_a_truth_of_exact_is_text_or_a_number(truth):
    with pytest.raises(ValueError, match=f"text or a number, not {type(truth).__name__}: give the text") as caught:
        exact(str(truth), truth)
    assert "\n" not in str(caught.value)


def test_countdown():
    truth = {"numbers": [3, 5, 7], "target": 22}
    with get_verifier("countdown") as verify:
        verdicts = verify(["5*3+7", "I try <answer> 5*3+7 </answer>", "5+3+7", "__import__('os')"], [truth] * 4)
        assert [v.correct for v in verdicts] == [True, True, False, False]
        assert verdicts[1].extracted == "5*3+7"
        assert verdicts[2].reason == "value is 15, not 22"
        assert len(verify(["1+" * 1000], [truth])[0].extracted) == MAX_RESPONSE_CHARS
        assert verify(["5*3+7"], [{"numbers": [3.0, 5, "7"], "target": 22.0}])[0].correct
        for wrong in ("22", {"numbers": [3, 5]}, truth | {"target": 22.5}, truth | {"target": inf}):
            with pytest.raises(ValueError, match="the ground truth of countdown"):
                verify(["5*3+7"], [wrong])


def test_regex():
    with get_verifier("regex", workers=1, timeout=0.5) as verify:
        verdicts = verify(["total: 12 kg", "none", "a" * 40 + "!", "x"], [r"\d+ kg", r"\d", r"(a+)+$", "("])
        assert [v.correct for v in verdicts] == [True, False, False, False]
        assert verdicts[0].extracted == "12 kg"
        assert "timed out" in verdicts[2].reason
        assert "is a pattern" in verdicts[3].reason
        assert verify.failures == {"timeout": 1, "error": 1}


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "fits every response"),
        (".*", "fits every response"),
        ("(yes)?", "fits every response"),
        ("\bfour\b", "control character"),
        ("r'\\d+'", "leave out r"),
        ("/yes/i", "without slashes"),
        ("[[:digit:]]+", "is a pattern: Possible nested set"),
        ("(?<year>\\d+)", "is a pattern: "),
        ("yes(?i)", "is a pattern: "),
        (5, "is a pattern, not int"),
        (["a"], "is a pattern, not list"),
    ],
)
def test_a_pattern_that_does_not_mean_what_it_says(pattern, said):
    with pytest.raises(ValueError, match=said) as caught:
        regex.check("", pattern)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "response"),
    [
        ("^", "anything"),
        ("^(?!.*no)", "yes"),
        ("\\A\\s*\\Z", " "),
        ("\\bfour\\b", "it is four"),
        ("(?i)YES", "yes"),
        ("/usr/bin", "/usr/bin"),
        ("'.*'", "a 'b' c"),
        ("(\\d+)%", "5%"),
        ("[a-m]", "k"),
        ("a\tb\n", "a\tb\n"),
    ],
)
def test_patterns_that_are_taken(pattern, response):
    assert regex.check(response, pattern).correct
