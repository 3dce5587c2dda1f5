"""Places where the final answer of a response is looked for."""

import pytest

from llmtrain.verifiers.math.final_answer import final_answer


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("<answer>42</answer>", "42"),
        ("<think>a</think>\n<answer>\n\\frac34\n</answer>\n", "\\frac34"),
        ("<answer>\\boxed{42}</answer>", "42"),
        ("<answer>So it is $x$, \\boxed{42}.</answer>", "42"),
        ("<answer>$x=42$</answer>", "x=42"),
        ("<answer>$$\n\\frac{3}{4}\n$$</answer>", "\\frac{3}{4}"),
        ("<answer>The answer is 72.</answer>", "72"),
        ("<answer>The total is 72 clips.</answer>", "72"),
        ("<answer>Natalia sold 72 clips.</answer>", "Natalia sold 72 clips."),
        ("<answer>at least 72</answer>", "at least 72"),
        ("<answer>First: 4. Second: 72.</answer>", "First: 4. Second: 72."),
        ("<answer>72 clips</answer>", "72 clips"),
        ("<answer>3\n4</answer>", "3\n4"),
        ("<answer>3 or 4</answer>", "3 or 4"),
        ("<answer>no solution</answer>", "no solution"),
        ("<answer>3</answer> or <answer>4</answer>", "3, 4"),
        ("<answer>3</answer> No, that is wrong. <answer>4</answer>", "4"),
        ("\\boxed{41} <answer>42</answer>", "42"),
        ("<answer>41</answer> so \\boxed{42}", "42"),
        ("#### 41 <answer>42</answer>", "42"),
        ("<answer>41</answer> #### 42", "41"),
    ],
)
def test_a_tag_is_a_place_like_a_box(response, answer):
    assert final_answer(response) == answer


@pytest.mark.parametrize(
    "response",
    [
        "<answer>42",
        "The answer is 42. <answer>",
        "<answer></answer>",
        "<answer> </answer> 42",
        "<answer>\\boxed{42</answer>",
        "It is not <answer>42</answer>.",
        "<answer>42</answer>. No, that is wrong.",
        "<answer>not 42</answer>",
    ],
)
def test_a_tag_without_an_answer(response):
    assert final_answer(response) is None


def test_the_word_boxed_is_no_box():
    assert final_answer("I use \\boxed notation. The answer is 42.") == "42"
    assert final_answer("\\boxed x and \\boxed 3") == "x, 3"


@pytest.mark.parametrize(
    "response",
    [r"so the area is \frac{17}{23", r"Then $2^{10", r"Then we get \[ x = 5 +", "so m = 17 +", "the value is 12*"],
)
def test_a_response_that_is_broken_off_within_a_formula_has_no_answer(response):
    assert final_answer(response) is None


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (r"\boxed{840}" + "\n\n" + r"\boxed{840}", "840"),
        ("<answer>3</answer>\n<answer>3</answer>", "3"),
        (r"\boxed{1}, \boxed{2}", "1, 2"),
        ("So the result is 6k.", "6k"),
        ("So the volume is 18 cm^3.", "18"),
        (r"So the result is \$6 million.", "6 million"),
        ("The answer is 42<|im_end|>", "42"),
    ],
)
def test_answers_that_strangers_wrote(response, said):
    assert final_answer(response) == said
