"""Where tables have their options, and the options that values name."""

import pytest

from llmtrain.data.options import named, option_columns, read_options

TEXTS = ["w", "x", "y"]


@pytest.mark.parametrize(
    ("columns", "options", "wrong"),
    [
        (("question", "choices", "choices.text", "answer"), ["choices"], False),
        (("Question", "A", "B", "C", "Answer"), ["A", "B", "C"], False),
        (("id", "question", "opa", "opb", "cop", "exp"), ["opa", "opb"], False),
        (("sentence", "option1", "option2", "answer"), ["option1", "option2"], False),
        (("ending0", "ending1", "label"), ["ending0", "ending1"], False),
        (("Option B", "Option A"), ["Option A", "Option B"], False),
        (("answerA", "answerB", "answerC"), ["answerA", "answerB", "answerC"], False),
        (("distractor2", "distractor1", "correct_answer"), ["distractor1", "distractor2"], True),
        (("a", "b", "c"), [], False),  # coefficients
        (("answer_1", "answer_2"), [], False),  # all right
        (("0", "1", "2"), [], False),  # turns of a dialogue
        (("A", "C", "answer"), [], False),
    ],
)
def test_columns_with_options(columns, options, wrong):
    assert option_columns(columns) == (options, wrong)


@pytest.mark.parametrize(
    "value",
    [
        TEXTS,
        {"text": TEXTS, "label": ["A", "B", "C"]},
        {"A": "w", "B": "x", "C": "y", "D": None},
        [{"key": "A", "value": "w"}, {"key": "B", "value": "x"}, {"key": "C", "value": "y"}],
        ["A)w", "B) x", "C. y"],
        "['w', 'x', 'y']",
        '{"A": "w", "B": "x", "C": "y"}',
        "A ) w , b ) x , c ) y".lower(),
    ],
)
def test_forms_of_options(value):
    found = read_options(value, "options")
    assert [option.text for option in found] == TEXTS
    assert [option.label.upper() for option in found] == ["A", "B", "C"]


@pytest.mark.parametrize("value", [None, "", [], {}, "[]"])
def test_no_option(value):
    assert read_options(value, "options") == []


@pytest.mark.parametrize("value", [["a"], "two words", "['a' 'b']", 7, ["a", None], ["a", {"b": 1}], list("ab") * 14])
def test_a_value_that_is_no_list_of_options_is_named(value):
    with pytest.raises(ValueError, match="column 'options'"):
        read_options(value, "options")


@pytest.mark.parametrize(
    ("value", "options", "first", "as_text", "place"),
    [
        ("B", TEXTS, 0, True, 1),
        ("(c)", TEXTS, 0, False, 2),
        ("Y", TEXTS, 0, True, 2),
        ("y", TEXTS, 0, False, None),
        (1, TEXTS, 0, True, 1),
        (1.0, TEXTS, 1, True, 0),
        ("1", TEXTS, 1, True, 0),
        ("1", TEXTS, None, True, None),
        ("2", ["1", "2", "3"], None, True, 1),
        (2, ["1", "2", "3"], 0, True, 2),
        (2, [1, 2, 3], 0, True, 1),
        (-1, TEXTS, 0, True, None),
        (True, TEXTS, 0, True, None),
        (float("nan"), TEXTS, 0, True, None),
    ],
)
def test_the_option_that_a_value_names(value, options, first, as_text, place):
    assert named(value, read_options(options, "options"), first, as_text) == place


def test_a_value_that_names_two_options():
    with pytest.raises(ValueError, match="'A', the label of one option and the text of another"):
        named("A", read_options(["B", "A"], "options"), 0, True)
