"""The explorer in a headless Chromium, for tests, benchmarks and the documentation's screenshots."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from llmtrain.process.local_ranks import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
START = 60.0
"""Time limit for the server's first answer, seconds."""


def chromium_path() -> str | None:
    """Return the path of the system's Chromium, if possible the one without a user interface; None if there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@contextmanager
def server(runs: Path) -> Iterator[str]:
    """Run the app on the run logs in `runs` and a free port until the block ends; yield its URL."""
    port = str(free_port())
    words = [sys.executable, "-m", "entrostat_app.launch", "--runs", str(runs), "--port", port, "--no-browser"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ.copy())
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(f"{url}/_stcore/health", process)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _wait(url: str, process: subprocess.Popen) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the app did not answer at {url}")


@contextmanager
def chromium() -> "Iterator[Browser]":
    """Hold a headless browser open. Raises RuntimeError with Debian's install command if Chromium is missing."""
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    if path is None:
        raise RuntimeError("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


QUIET = 0.25
"""Seconds without a change after which a page counts as drawn."""
_WATCH = """
() => {
  if (!("changed" in window)) {
    new MutationObserver(() => { window.changed = performance.now() })
      .observe(document.body, {childList: true, subtree: true})
  }
  window.changed = performance.now()
}
"""


def settled(page: "Page", timeout: float = 30.0) -> None:
    """Wait until the page's script has finished and the page is drawn: no element is stale, added or removed.

    Streamlit's own state says notRunning before the last pictures are drawn.
    """
    idle = "[data-testid=stApp][data-test-script-state=notRunning]:not(:has([data-stale=true]))"
    done = f"quiet => performance.now() - window.changed > quiet && document.querySelector('{idle}')"
    page.evaluate(_WATCH)
    page.wait_for_function(done, arg=1000 * QUIET, timeout=1000 * timeout)
