"""LaTeX commands that have lost their backslash."""

import json

import pytest

from llmtrain.data import read
from llmtrain.data.backslashes import LOST, lost_backslash
from llmtrain.data.notes import DataWarning


@pytest.mark.parametrize("command", [f"\\{letter}{rest}" for letter, rests in LOST.items() for rest in rests])
def test_each_command_is_known_by_what_is_left(command):
    escapes = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
    assert lost_backslash(f"x {escapes[command[1]]}{command[2:]}{{y}}") == command
    assert lost_backslash(f"x {command}{{y}}") == ""


@pytest.mark.parametrize(
    "text", ["a\tand b", "a\nequal", "\tto", "row\r\nright", "a\nnot", "\x0cve and \x0cnd", "", None, 5]
)
def test_other_texts_are_left_alone(text):
    assert lost_backslash(text) == ""


def test_questions_are_counted_in_one_warning(tmp_path):
    lines = [json.dumps({"question": f"{i}: \x0crac{{1}}{{2}}?", "answer": "1"}) for i in range(3)]
    (tmp_path / "q.jsonl").write_text("\n".join([*lines, json.dumps({"question": "4?", "answer": "4"})]))
    with pytest.warns(DataWarning) as told:
        assert len(read(str(tmp_path / "q.jsonl")).questions) == 4
    (line,) = (str(one.message) for one in told)
    assert line.startswith(r"q.jsonl: 3 rows with control characters for backslashes, the first \frac in line 1: ")


def test_an_answer_is_refused(jsonl):
    rows = [{"question": "1?", "answer": "1"}, {"question": "2?", "answer": "\text{b}"}]
    with pytest.raises(ValueError, match=r"line 2: column 'answer' has a control character .*\\text"):
        read(jsonl(rows))
    with pytest.raises(ValueError, match=r"line 1: column 'answer' has a control"):
        read(jsonl([{"question": "2?", "answer": ["1", "\beta"]}]))
    program = {"question": "Twice?", "test": "def test_f():\n\text = 1\n\tassert f(1) == 2"}
    assert len(read(jsonl([program])).questions) == 1
