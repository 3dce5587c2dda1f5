"""Answers collected in tests/corpus/answers are judged as their lines say.

Each line has `answer` (put into a box unless it names its final answer itself) or `response` (as it is), `truth`,
`prompt` or null, `right`, and `about`: what goes wrong with such answers elsewhere.
"""

import json
from pathlib import Path

import pytest

from llmtrain.verifiers import get_verifier

LINES = [
    (path.stem, at, json.loads(line))
    for path in sorted((Path(__file__).parents[2] / "corpus" / "answers").glob("*.jsonl"))
    for at, line in enumerate(path.read_text().splitlines(), 1)
]


@pytest.fixture(scope="module")
def verify():
    with get_verifier("math", workers=1, timeout=5.0) as verifier:
        yield verifier


def response(line: dict) -> str:
    if "response" in line:
        return line["response"]
    answer = line["answer"]
    return answer if "\\boxed" in answer or "The answer " in answer else f"The answer is \\boxed{{{answer}}}."


def test_there_are_answers():
    assert len(LINES) >= 60


@pytest.mark.parametrize("line", [pytest.param(line, id=f"{stem}-{at}") for stem, at, line in LINES])
def test_an_answer_is_judged_as_its_line_says(verify, line):
    (verdict,) = verify([response(line)], [line["truth"]], prompts=[line["prompt"] or ""])
    assert verdict.correct is line["right"], f"{response(line)} for {line['truth']}, {line['about']}: {verdict.reason}"
