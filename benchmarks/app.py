"""Speed of the explorer in Chromium: seconds to the first figure, milliseconds from a move to the new picture.

    python benchmarks/app.py

A move is a press of an arrow key on a slider. A picture counts as new when the lines of its svg have changed, page
Probes when the text of an answer has. Trials, the experiments of the page Theorems, are timed without a browser, at
their defaults.
"""

import argparse
import tempfile
import time
from itertools import product
from math import isfinite
from pathlib import Path
from random import Random
from statistics import median, quantiles

from playwright.sync_api import Browser, Page

from entrostat.logs.runlog import RunLog
from entrostat_app.browser.headless import chromium, server, settled
from entrostat_app.browser.screenshots import PREDICTION
from toybandit.trials import TRIALS

FIGURE = "[data-testid=stVegaLiteChart] svg"
PLAYGROUND = "?view=Playground"
TRAP = "learn?target=0.2"
"""First lesson of the course, with its slider at one of its lowest positions."""
TOKENS = 1000
"""Length of the answers on page Probes."""
TOKEN_NUMBERS = ("logp", "entropy", "advantage", "weight", "entropy_change")
PROBES = "probes?probes.a=a&probes.b=b&probes.step=0"
LINES = """(chart) => {
  const svg = document.querySelectorAll('[data-testid=stVegaLiteChart]')[chart]?.querySelector('svg');
  return svg ? Array.from(svg.querySelectorAll('path'), (path) => path.getAttribute('d')).join() : '';
}"""
"""Lines of the picture with this number."""
ANSWERS = """() => Array.from(document.querySelectorAll('[aria-label^="Answer of"]'), (a) => a.textContent).join()"""
"""Both answers of page Probes."""
WATCH = """(shown, chart) => new Promise((done) => {
  const before = shown(chart), start = performance.now();
  const look = () => {
    const now = shown(chart);
    if (now !== '' && now !== before) done(performance.now() - start);
    else if (performance.now() - start > 3000) done(Infinity);
    else requestAnimationFrame(look);
  };
  look();
})"""


def first_figures(browser: Browser, url: str, visits: int) -> list[float]:
    """Return seconds from the visit to the first figure, each with an empty browser cache."""
    found = []
    for _ in range(visits):
        context = browser.new_context()
        page = context.new_page()
        page.goto(url, wait_until="commit")
        page.wait_for_selector(FIGURE)
        found.append(page.evaluate("performance.now()") / 1000)
        context.close()
    return found


def redraws(page: Page, key: str, moves: int, shown: str = LINES, chart: int = 0) -> list[float]:
    """Return milliseconds from a key press on the slider `key` until what is shown has changed.

    shown: function in JavaScript, of the picture's number `chart`. Moves that do not change the picture are left out:
    a rollout with equal rewards in every group changes no policy.
    """
    found = []
    handle = page.locator(f".st-key-{key}").get_by_role("slider")
    handle.focus()
    for _ in range(moves):
        page.evaluate(f"() => {{ window.waiting = ({WATCH})({shown}, {chart}) }}")
        page.keyboard.press("ArrowRight")
        took = page.evaluate("window.waiting")
        if isfinite(took):
            found.append(took)
        settled(page)
        page.wait_for_timeout(100)
    return found


def write_probes(folder: Path, tokens: int) -> None:
    """Write two runs with 32 answers of random letters at each of 21 steps."""
    for name in "ab":
        random = Random(name)
        log = RunLog(folder / name, {}, seed=0)
        for step in range(0, 210, 10):
            log.log(step, {"entropy": 1.0})
            answers = []
            for probe, sample in product(range(8), range(4)):
                letters = random.choices("abcdefgh ", k=tokens)
                numbers = {key: [round(random.random(), 4) for _ in letters] for key in TOKEN_NUMBERS}
                known = {"probe": probe, "sample": sample, "prompt": "", "response": "".join(letters), "reward": 1.0}
                answers.append(known | {"tokens": letters} | numbers)
            log.probes(step, answers)
        log.close()


def trials(calls: int) -> dict[str, float]:
    """Return milliseconds of each trial at its defaults, the fastest of several calls, slowest trial first."""
    found = {}
    for name, trial in TRIALS.items():
        times = []
        for _ in range(calls):
            start = time.perf_counter()
            trial.run()
            times.append(1000 * (time.perf_counter() - start))
        found[name] = min(times)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--visits", type=int, default=5)
    given = parser.parse_args()
    times_of = trials(3)
    slowest = ", ".join(f"{name} {took:.0f} ms" for name, took in list(times_of.items())[:3])
    print(f"trials: median {median(times_of.values()):.0f} ms; slowest: {slowest}")
    with tempfile.TemporaryDirectory() as runs, server(Path(runs)) as url, chromium() as browser:
        write_probes(Path(runs), TOKENS)
        first_figures(browser, f"{url}/{PLAYGROUND}", 1)  # warms the server
        firsts = first_figures(browser, f"{url}/{PLAYGROUND}", given.visits)
        print(f"first figure: median {median(firsts):.2f} s, greatest {max(firsts):.2f} s, of {given.visits} visits")
        moves = given.moves
        for place, key, most, shown, chart in (
            (PLAYGROUND, "lr", moves, LINES, 0),
            (PLAYGROUND, "t", moves, LINES, 1),
            (TRAP, "target", 11, LINES, 0),
            (PROBES, "probes-step", 20, ANSWERS, 0),
        ):
            page = browser.new_page()
            page.goto(f"{url}/{place}")
            if place == TRAP:
                page.locator(PREDICTION).click()
            page.wait_for_selector(FIGURE)
            settled(page)
            times = redraws(page, key, min(moves, most), shown, chart)
            p95 = quantiles(times, n=20)[-1]
            print(f"redraw after a move of {key}: median {median(times):.0f} ms, p95 {p95:.0f} ms, of {len(times)}")


if __name__ == "__main__":
    main()
