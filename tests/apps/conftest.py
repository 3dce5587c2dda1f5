"""Fixtures: the app on a real server and a real Chromium, started once for all tests."""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from entrostat_app.browser.headless import chromium, chromium_path, server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class OfTheApp(pytest.Module):
    """Test file that is skipped if the explorer's dependencies are not installed."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        pytest.importorskip("streamlit", reason="pip install '.[app]'")
        return super().collect()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return OfTheApp.from_parent(parent, path=module_path)


@pytest.fixture(autouse=True)
def own_main() -> Iterator[None]:
    """Restore `__main__`: AppTest replaces it with its script, which processes spawned later would run."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one run log, and two runs with answers to probes in a folder of their own."""
    from probed_runs import write

    from toybandit.cli import main

    folder = tmp_path_factory.mktemp("runs")
    write(folder / "probes")
    args = (
        "run --env noisy --controller entropic --target 0.6 --states 4 --rollouts 30 --passes 2 --seeds 2 --set tau=0.3"
    )
    assert main([*args.split(), "--out", str(folder / "first")]) == 0
    return folder


@pytest.fixture(scope="session")
def url(runs: Path) -> Iterator[str]:
    """Yield the URL of the running app."""
    with server(runs) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Yield a headless Chromium."""
    if chromium_path() is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with chromium() as running:
        yield running


@pytest.fixture
def tab(browser: "Browser") -> "Iterator[Page]":
    """Yield a new tab, 1280 pixels wide, with an empty cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    yield context.new_page()
    context.close()
