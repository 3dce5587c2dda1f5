import gc
import os

os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels' tests run on a CPU; read once, when triton is first imported
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)  # a busy machine is no failure
hypothesis.settings.load_profile("steady")
IN_MEMORY = Path("/dev/shm")
"""Folder for temporary files: checkpoints are flushed to the disk, and on a slow one the tests mostly wait for it."""
ROOM = 6 << 30
"""Free bytes from which that folder is used."""
if "TMPDIR" not in os.environ and IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM:
    os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)

RERUNS = 1
"""Second attempts of a test in a browser: Chromium and its server share the machine with other tests."""
LISTS = {name: Path(__file__).with_name(f"{name}.txt") for name in ("slow", "long")}
"""Tests by mark, as measured by slow_list.py, besides those marked in their files."""
SELDOM = 10_000
"""New objects after which young garbage is collected; Python's own number, 700, costs an eighth of the quick tests."""
thaw = gc.unfreeze
asked_to_thaw = []
"""Calls of gc.unfreeze since the heap was last frozen: vLLM makes one when an engine ends."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while test files import their packages, and later none of what they imported.

    A full collection, as DeepSpeed and vLLM ask for, otherwise goes through a million objects that stay.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(SELDOM)
        gc.unfreeze = lambda: asked_to_thaw.append(True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Once a file's tests are done, collect what was frozen with vLLM's engines, in one full collection."""
    yield
    if asked_to_thaw and (nextitem is None or nextitem.path != item.path):
        asked_to_thaw.clear()
        thaw()
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with slow tests first, so that none is left over for one worker; mark what LISTS list.

    Tests in a browser are run once more if they fail.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    listed = {mark: {*path.read_text(encoding="utf-8").splitlines()} for mark, path in LISTS.items()}
    for item in items:
        for mark, tests in listed.items():
            if item.nodeid in tests:
                item.add_marker(mark)
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a worker's failure at once: where a worker is lost, the summary may never come."""
    if report.failed and hasattr(report, "node"):
        print(f"\n{report.nodeid} failed:\n{report.longreprtext}", file=sys.stderr, flush=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the failures after which a test was run again."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"failed once: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """A function that installs a distribution for the test: its name, its entry points and its modules' text."""

    def install(name, declared, **modules):
        folder = tmp_path / name
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(declared)
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text)
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(folder))

    return install


@pytest.fixture
def own_controllers(monkeypatch):
    """Forget controllers that the test registers, and the modules they come from."""
    from entrostat import list_controllers
    from entrostat.registry import REGISTRY

    known = {*list_controllers(), *REGISTRY}
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(REGISTRY) - known:
        sys.modules.pop(REGISTRY.pop(name).__module__, None)


@pytest.fixture
def own_claims():
    """Forget claims and trials that the test registers, and the modules they come from; the packages' own stay."""
    from toybandit.claims import CLAIMS
    from toybandit.trial import TRIALS

    known = {*CLAIMS}, {*TRIALS}
    yield
    for registry, names in zip((CLAIMS, TRIALS), known, strict=True):
        for name in set(registry) - names:
            module = (registry[name].check if registry is CLAIMS else registry[name].measure).__module__
            if not module.startswith(("toybandit.", "llmtrain.")):
                del registry[name]
                sys.modules.pop(module, None)
