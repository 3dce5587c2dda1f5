"""Write tests/slow.txt: the tests that take LIMIT seconds and more, which `make test` leaves out.

    OMP_NUM_THREADS=1 python tests/slow_list.py        on a machine that does nothing else

Runs all tests that are not marked slow or long in their files. Every file keeps its fastest test.
"""

import sys
from collections import defaultdict
from pathlib import Path

import pytest

LIMIT = 0.4
"""Seconds of a test, with its fixtures, from which it is slow."""
LIST = Path(__file__).with_name("slow.txt")


class Durations:
    """Seconds of each test, from the reports of a run."""

    def __init__(self) -> None:
        self.of: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.of[report.nodeid] += report.duration


def slow(seconds: dict[str, float]) -> list[str]:
    """Return the tests from LIMIT on, in order, without the fastest of each file."""
    files: dict[str, list[str]] = defaultdict(list)
    for test in seconds:
        files[test.partition("::")[0]].append(test)
    kept = {min(tests, key=seconds.__getitem__) for tests in files.values()}
    return sorted(test for test, took in seconds.items() if took >= LIMIT and test not in kept)


def main() -> int:
    found = Durations()
    before = LIST.read_text(encoding="utf-8")
    LIST.write_text("", encoding="utf-8")  # all of them run
    flags = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-q", "-m", "not slow and not long"]
    code = pytest.main([*flags, *sys.argv[1:]], plugins=[found])
    whole = code == pytest.ExitCode.OK
    LIST.write_text("".join(f"{test}\n" for test in slow(found.of)) if whole else before, encoding="utf-8")
    print(f"{LIST}: {len(slow(found.of))} of {len(found.of)} tests" if whole else f"{LIST} is as before: a test failed")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
