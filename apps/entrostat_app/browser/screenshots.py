"""Screenshots for docs/app.md: the first screen of every page in Chromium.

python -m entrostat_app.browser.screenshots --out docs/app
"""

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..menu import HOME, PAGES, address
from .headless import chromium, server, settled

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize

FIGURE = "[data-testid=stVegaLiteChart] svg"
LAPTOP: "ViewportSize" = {"width": 1280, "height": 800}
TELEPHONE: "ViewportSize" = {"width": 390, "height": 844}
PREDICTED = ("learn", HOME)
"""Pages that draw nothing before a prediction."""
PREDICTION = "[data-testid=stRadioGroup] label:has-text('thermostat')"
RUNS = {
    "grpo": "--controller grpo",
    "entropic": "--controller entropic --target 0.6 --set tau=0.3",
    "thermostat": "--controller thermostat --target 0.6",
}
"""Run logs for the page Runs: flags of `toybandit run`, by name."""
PROBED = {"probes/grpo": "grpo", "probes/steer": "steer"}
"""Runs for the page Probes: controllers of `llmtrain train`, by name."""


def make_runs(folder: Path) -> None:
    """Write small run logs into `folder`: of the trainer, which take minutes, and of the simulator."""
    from llmtrain.cli import main as train
    from toybandit.cli import main

    for name, controller in PROBED.items():
        flags = "--steps 40 --save-every 40 --eval.every 0 --log.no-tensorboard --log.probes 4 --log.probe-every 5"
        words = (
            f"train --preset countdown-cpu --threads 1 {flags} --log.probe-samples 8 --controller {controller}".split()
        )
        train([*words, "--out", str(folder / name)])
    for name, flags in RUNS.items():
        words = f"run --env noisy --states 16 --rollouts 120 --passes 4 --lr 1 --seeds 4 {flags}".split()
        main([*words, "--out", str(folder / name)])


def take(
    browser: "Browser",
    address: str,
    path: Path,
    *,
    size: "ViewportSize" = LAPTOP,
    dark: bool = False,
    predict: bool = False,
    shows: str = FIGURE,
) -> None:
    """Save a screenshot of the first screen at `address` as PNG, once it has an element of the selector `shows`.

    predict: choose PREDICTION first.
    """
    context = browser.new_context(viewport=size, color_scheme="dark" if dark else "light", device_scale_factor=1)
    page = context.new_page()
    page.goto(address)
    if predict:
        page.locator(PREDICTION).click()
    page.wait_for_selector(shows)
    settled(page)
    page.wait_for_timeout(1500)
    page.screenshot(path=path)
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/app"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        make_runs(Path(name))
        with server(Path(name)) as url, chromium() as browser:
            for path in PAGES:
                print(path)
                take(browser, f"{url}/{address(path)}", out / f"{path}.png", predict=path in PREDICTED)
            diagnosis = f"{url}/runs?runs=grpo&runs.show=Diagnosis"
            take(browser, diagnosis, out / "diagnosis.png", shows="[data-testid=stCode]:visible")
            take(browser, url, out / "telephone.png", size=TELEPHONE, predict=True)
            take(browser, url, out / "dark.png", dark=True, predict=True)


if __name__ == "__main__":
    main()
