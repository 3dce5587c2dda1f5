"""Questions of prompts, and answers that stand in them."""

import pytest

from llmtrain.verifiers import Verdict, Verifier, get_verifier
from llmtrain.verifiers.asked import stands_in, text_of


def test_the_question_of_a_prompt():
    assert text_of("a") == "a"
    assert text_of(None) == ""
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    assert text_of(chat) == "a\nb"
    assert text_of([{"content": "a"}]) == "a"
    assert text_of({"role": "user", "content": "a"}) == "a"


@pytest.mark.slow
@pytest.mark.parametrize(("prompt", "text"), [(7, "7"), (0, "0"), (1.5, "1.5"), (True, "True"), ([], "")])
def test_a_prompt_that_is_no_text(prompt, text):
    assert text_of(prompt) == text
    with get_verifier("math", workers=1) as verify:
        assert verify(["5"], ["5"], prompts=[prompt])[0].correct


@pytest.mark.parametrize(
    ("answer", "text", "found"),
    [
        ("12", "Is it 12?", True),
        ("12", "Is it 123?", False),
        ("12", "Is it 1.12?", False),
        ("2", "Is it 2.5?", False),
        ("2", "It is 2.", True),
        ("1,234", "It is 1234.", True),
        ("\\dfrac{1}{2}", "It is $\\frac{1}{2}$.", True),
        ("a \\cdot b", "It is $a\\times b$.", True),
        ("x^2 - 1", "Factor $x^2-1$.", True),
        ("red", "The colour is red.", True),
        ("red", "It is covered.", False),
        ("", "It", False),
    ],
)
def test_answers_that_stand_in_a_text(answer, text, found):
    assert stands_in(answer, text) is found


def test_a_verdict_says_whether_a_correct_answer_was_copied():
    with get_verifier("math", workers=1) as verify:
        found = verify(["\\boxed{12}"] * 3, ["12", "12", "13"], prompts=["Is it 12?", "Six and six?", "Is it 12?"])
    assert [verdict.correct for verdict in found] == [True, True, False]
    assert [verdict.copied for verdict in found] == [True, False, False]


def test_there_are_as_many_prompts_as_responses_and_as_many_verdicts():
    class Short(Verifier):
        def judge(self, responses, ground_truths):
            return [Verdict(True, "")]

    for prompts, names in ((["c"], "2 responses for 1 prompts"), ((), "1 verdicts on 2 responses")):
        with pytest.raises(ValueError, match=names):
            Short()(["a", "b"], ["a", "b"], prompts=prompts)


def test_a_check_may_ask_for_the_question(tmp_path, monkeypatch):
    (tmp_path / "asking.py").write_text("def check(response, truth, question): return response in question\n")
    monkeypatch.syspath_prepend(tmp_path)
    with get_verifier("asking:check", workers=1) as verify:
        assert [v.correct for v in verify(["a", "b"], ["", ""], prompts=["an a", "an a"])] == [True, False]
        assert not verify(["a"], [""])[0].correct
