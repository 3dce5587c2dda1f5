"""LiveCodeBench: rows as the hub publishes them, with plain and packed tests."""

import base64
import json
import pickle
import zlib

import pytest

from llmtrain.data import read
from llmtrain.data.live_code import STDIO


def cases(*pairs, kind="stdin"):
    return json.dumps([{"input": given, "output": wanted, "testtype": kind} for given, wanted in pairs])


def packed(text):
    return base64.b64encode(zlib.compress(pickle.dumps(text))).decode()


def row(**changed):
    found = {
        "question_title": "Sum",
        "question_content": "Add two numbers.",
        "platform": "atcoder",
        "question_id": "a",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": cases(("1 2\n", "3\n")),
        "private_test_cases": packed(cases(("3 4\n", "7\n"))),
        "metadata": "{}",
    }
    return found | changed


CALLS = {
    "question_content": "Sum a list, and add k.",
    "starter_code": "class Solution:\n    def f(self, nums: List[int], k: int) -> List[int]:\n        ",
    "public_test_cases": cases(("[1, 2]\n4", "[7]"), kind="functional"),
    "private_test_cases": cases(kind="functional"),
    "metadata": json.dumps({"func_name": "f"}),
}


@pytest.fixture
def written(tmp_path):
    def write(*rows):
        path = tmp_path / "test5.jsonl"
        path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
        return str(path)

    return write


def test_programs_and_functions(written):
    first, second = read(written(row(), row(**CALLS))).questions
    assert first.text == f"Add two numbers.\n\n{STDIO}"
    assert first.ground_truth == {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}
    assert second.text.endswith("```python\n" + CALLS["starter_code"].rstrip() + "\n```")
    assert second.ground_truth == {"inputs": [[[1, 2], 4]], "outputs": [[[7]]], "fn_name": "f"}
    assert first.source == "livecodebench"


class Run:
    def __reduce__(self):
        return (print, ("this must not run",))


@pytest.mark.parametrize(
    ("column", "value", "names"),
    [
        ("question_content", " ", "text"),
        ("private_test_cases", "xyz", "JSON.* Error"),
        ("private_test_cases", packed(Run()), "JSON.* ValueError"),
        ("metadata", "[]", "list"),
        ("metadata", None, "JSON"),
        ("public_test_cases", '[{"input": ""}]', "'output'"),
        ("public_test_cases", cases(), "no test"),
    ],
)
def test_a_broken_row_names_its_column(column, value, names, written, capsys):
    """Tests in none of the two columns are the public one's fault."""
    with pytest.raises(ValueError, match=rf"test5\.jsonl, line 1: .*'{column}' .*{names}"):
        read(written(row(**{"private_test_cases": cases(), column: value})))
    assert not capsys.readouterr().out
