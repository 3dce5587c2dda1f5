"""Programs and tests that others' graders judged wrongly, in tests/corpus/programs/reported.jsonl.

Each line has `issue`, where people met it or the data set with the format, `about`, what goes wrong elsewhere,
`response`, `truth`, and `right`, or `refused`, a regular expression of the one line that says why.
"""

import json
from pathlib import Path

import pytest

from llmtrain.verifiers.python_tests import plan_of

FILE = Path(__file__).parents[2] / "corpus" / "programs" / "reported.jsonl"
LINES = [pytest.param(json.loads(line), id=str(at)) for at, line in enumerate(FILE.read_text().splitlines(), 1)]
JUDGED = [line for line in LINES if "right" in line.values[0]]
REFUSED = [line for line in LINES if "refused" in line.values[0]]


@pytest.mark.slow
@pytest.mark.parametrize("line", JUDGED)
def test_a_program_is_judged_as_its_line_says(python, line):
    (verdict,) = python([line["response"]], [line["truth"]])
    assert verdict.correct is line["right"], f"{line['about']}: {verdict.reason}"


@pytest.mark.parametrize("line", REFUSED)
def test_tests_are_refused_as_their_line_says(line):
    with pytest.raises(ValueError, match=line["refused"]):
        plan_of(line["truth"])


def test_there_are_lines():
    assert len(JUDGED) >= 15
    assert len(REFUSED) >= 3
