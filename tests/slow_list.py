"""Write tests/slow.txt and tests/long.txt: what `make test` leaves out, and what `make test-all` leaves out too.

    OMP_NUM_THREADS=1 python tests/slow_list.py        half an hour on two cores that do nothing else

Runs all tests that are not marked long in their files. `make test` keeps each file's fastest test. `make test-all` runs
of each slow test the quickest case if it takes less than MOST seconds, and of each file the quickest one below FIRST;
further cases, if they take less than FURTHER seconds. The rest is for `make test-long`. What a file's tests share is
counted for the first of them.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

LIMIT = 0.4
"""Seconds of a test, with its fixtures, from which it is slow."""
FIRST, MOST, FURTHER = 15.0, 4.0, 0.3
"""Seconds from which the quickest test of a file, another test, and a further case of one are long."""
KEPT = (
    "tests/apps/test_browser.py::test_a_first_visit_shows_a_figure_and_no_error[runs]",
    "tests/apps/test_browser.py::test_an_engineer_drops_a_log_and_finds_a_setting_to_paste[trainer_state.json]",
    "tests/apps/test_four_people.py",
    "tests/docs/test_site.py",
    "tests/docs/test_tutorials.py::test_a_page_shows_what_it_prints[claim]",
    "tests/llmtrain/process/test_torchrun.py",
    "tests/common/test_verl_itself.py::test_two_rollouts_of_verls_own_actor_are_the_plans_and_resume[0]",
    "tests/llmtrain/rollout/ray/test_direct_weights.py::test_engines_meet_the_trainer_as_the_ranks_after_its_own",
    "tests/llmtrain/training/test_trainer.py::test_six_steps_equal_three_a_kill_and_three_resumed",
    "tests/llmtrain/training/test_training_with_vllm.py::test_a_run_with_vllm_is_on_policy_and_repeats",
)
"""Files and tests that are never long: whole ways of a user, and a run with each engine."""
SLOW, LONG = (Path(__file__).with_name(name) for name in ("slow.txt", "long.txt"))


class Durations:
    """Seconds of each test, from the reports of a run, and the tests marked slow in their files."""

    def __init__(self) -> None:
        self.of: dict[str, float] = defaultdict(float)
        self.marked: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.of[report.nodeid] += report.duration
        if "slow" in report.keywords:
            self.marked.add(report.nodeid)


def by_file(tests: Iterable[str]) -> dict[str, list[str]]:
    files: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        files[test.partition("::")[0]].append(test)
    return files


def slow(seconds: dict[str, float], marked: set[str]) -> list[str]:
    """Return the tests from LIMIT on that are not marked, in order, without the fastest of each file."""
    kept = {min(tests, key=seconds.__getitem__) for tests in by_file(seconds).values()}
    return sorted(test for test, took in seconds.items() if took >= LIMIT and test not in {*kept, *marked})


def long(seconds: dict[str, float], slow_ones: Iterable[str]) -> list[str]:
    """Return the slow tests that are long, in order."""
    found = []
    for tests in by_file(slow_ones).values():
        seen: set[str] = set()
        for place, test in enumerate(sorted(tests, key=seconds.__getitem__)):
            function = test.partition("[")[0]
            limit = FURTHER if function in seen else MOST if place else FIRST
            if seconds[test] >= limit and not test.startswith(KEPT):
                found.append(test)
            seen.add(function)
    return sorted(found)


def main() -> int:
    found, lists = Durations(), (SLOW, LONG)
    texts = [path.read_text(encoding="utf-8") for path in lists]
    for path in lists:
        path.write_text("", encoding="utf-8")  # all of them run
    flags = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-q", "-m", "not long"]
    code = pytest.main([*flags, *sys.argv[1:]], plugins=[found])
    if code == pytest.ExitCode.OK:
        listed = slow(found.of, found.marked)
        texts = ["".join(f"{x}\n" for x in tests) for tests in (listed, long(found.of, {*listed, *found.marked}))]
    for path, text in zip(lists, texts, strict=True):
        path.write_text(text, encoding="utf-8")
        print(f"{path}: {len(text.splitlines())} of {len(found.of)} tests")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
