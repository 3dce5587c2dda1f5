"""Exact text, regular expressions and Countdown."""

import pytest

from llmtrain.verifiers import get_verifier


def test_exact():
    with get_verifier("exact") as verify:
        assert [v.correct for v in verify([" yes\n", "Yes", "yes."], ["yes"] * 3)] == [True, False, False]
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
        with pytest.raises(ValueError, match="the ground truth of countdown"):
            verify(["1"], ["22"])


def test_regex():
    with get_verifier("regex", workers=1, timeout=0.5) as verify:
        verdicts = verify(["total: 12 kg", "none", "a" * 40 + "!", "x"], [r"\d+ kg", r"\d", r"(a+)+$", "("])
        assert [v.correct for v in verdicts] == [True, False, False, False]
        assert verdicts[0].extracted == "12 kg"
        assert "timed out" in verdicts[2].reason
        assert "is a pattern" in verdicts[3].reason
        assert verify.failures == {"timeout": 1, "error": 1}
