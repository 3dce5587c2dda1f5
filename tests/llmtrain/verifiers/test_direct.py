"""Exact text, regular expressions and Countdown."""

from math import inf

import pytest

from llmtrain.verifiers import get_verifier
from llmtrain.verifiers.countdown import MAX_RESPONSE_CHARS


def test_exact():
    with get_verifier("exact") as verify:
        verdicts = verify([" yes\n", "Yes", "yes."], ["yes"] * 3)
        assert [v.correct for v in verdicts] == [True, False, False]
        assert [v.reason for v in verdicts] == ["equal", "not equal", "not equal"]
        assert verify.failures == {}
        assert verify(["5"], [5])[0].correct
        with pytest.raises(ValueError, match="2 responses for 1"):
            verify(["a", "b"], ["a"])


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
