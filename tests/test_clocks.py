"""A clock that jumps, set by hand or by a time server, changes nothing: durations are of one that does not."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
JUMPING = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today"}
ALLOWED = {
    "packages/common/entrostat/logs/runlog.py": 1,  # the date in a manifest
    "apps/entrostat_app/views/runs/run_log.py": 1,  # the age of a file, compared with the clock that dated it
}


@pytest.mark.slow
def test_durations_are_of_a_clock_that_does_not_jump():
    found = {}
    for path in sorted([*ROOT.glob("packages/*/*/**/*.py"), *ROOT.glob("apps/**/*.py")]):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        if count := sum(ast.unparse(call.func) in JUMPING for call in calls):
            found[str(path.relative_to(ROOT))] = count
    assert found == ALLOWED
