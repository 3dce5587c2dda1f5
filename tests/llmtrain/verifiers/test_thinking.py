"""Answers after thinking."""

import pytest

from llmtrain.verifiers import get_verifier
from llmtrain.verifiers.thinking import MARKS, after_mark, after_thinking


@pytest.mark.parametrize(("begin", "end"), MARKS)
def test_only_what_follows_the_last_thought_is_the_answer(begin, end):
    assert after_thinking(f"{begin}a{end}b") == "b"
    assert after_thinking(f"a{end}b") == "b"  # the prompt began the thought
    assert after_thinking(f"{begin}a{end}b{begin}c{end}d") == "d"
    assert after_thinking(f"{begin}a") is None
    assert after_thinking(f"{begin}a{end}b{begin}c") is None
    assert after_thinking("a") == "a"


def test_a_mark_of_ones_own():
    assert after_mark("a FINAL b FINAL c", "FINAL") == " c"
    assert after_mark("a", "FINAL") is None


@pytest.mark.slow
def test_verdicts_on_thinking_models():
    responses = [
        r"<think>so \boxed{5} but",
        r"<think>\boxed{4}</think> It is 5",
        r"<think>\boxed{5}</think>",
        r"\boxed{5}",
    ]
    with get_verifier("math", workers=1) as verify:
        assert [found.correct for found in verify(responses, ["5"] * 4)] == [False, True, False, True]
        assert verify(responses[:1], ["5"])[0].reason == "no answer: the thinking does not end"
    with get_verifier("math", workers=1, answer_after="</think>") as verify:
        assert [found.correct for found in verify(responses, ["5"] * 4)] == [False, True, False, False]
    with get_verifier("countdown") as verify:
        truth = {"numbers": [3, 5], "target": 8}
        assert [found.correct for found in verify(["<think>3+5", "<think>3*5</think>3+5"], [truth] * 2)] == [
            False,
            True,
        ]


def test_a_pattern_of_the_user_sees_the_whole_response():
    with get_verifier("regex", workers=1) as verify:
        assert verify(["<think>a"], ["^<think>"])[0].correct
    with get_verifier("regex", workers=1, answer_after="</think>") as verify:
        assert [found.correct for found in verify(["<think>a</think>b"] * 2, ["a", "^b"])] == [False, True]
