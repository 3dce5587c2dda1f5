"""`thermostat` with mode=anchor against `kl_ref` at several fixed coefficients, and against its own other modes.

    python benchmarks/anchor.py --out /tmp/anchor-runs            train for at most --minutes, in one process
    python benchmarks/anchor.py --out /tmp/anchor-runs            continue: finished runs are kept, others resume
    python benchmarks/anchor.py --out /tmp/anchor-runs --page     docs/anchor.json and docs/anchor.md from finished runs

Every run trains the demo's model on Countdown, as `llmtrain leaderboard` does. Targets are .15, .26 and .45 nats, and
one that falls from .45 to .15 along a cosine; seeds 0 to 2, or the first --seeds of them. Entropy and reward are means
over the last third of the steps, avg@8 and pass@8 are from an evaluation on 512 held-out problems after the last step.
`kl_ref` has no target: it is read at the entropy that each entry of thermostat reached, interpolated in log entropy
between the two of its coefficients that enclose it. That is the best coefficient for this entropy, known only after
training with all of them. It has GRPO's estimator k3, and for one coefficient also k2, the one of mode=anchor, to tell
solving from estimating.

Expected: at each target mode=anchor holds the entropy as well as mode=bonus does, and trains to more reward and
pass@8. Null results, any of which keeps the default of thermostat as it is:

- the reward and the pass@8 of mode=anchor are within two standard errors of those of mode=bonus at the same target;
- either is more than two standard errors below that of `kl_ref` at the same entropy: then solving for the coefficient
  in every update costs what the reference gives;
- the target error is above .02 nats, or the coefficient is at anchor_max in most updates of the last third: then the
  penalty cannot hold this target, and mode=anchor+bonus is measured for that reason.

A run has 240 steps: a step took 1.0 to 2.6 s on one thread of a busy machine, so 480 steps for all runs were too many.
The order of the runs is by importance, so that an unfinished experiment has whole comparisons: first anchor, bonus,
anchor+bonus and `kl_ref` for all seeds, then the other modes.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from itertools import chain
from pathlib import Path

if __name__ == "__main__":
    sys.path.pop(0)  # otherwise transformers imports a file of this folder as the package kernels

from entrostat.lineup import Entry
from llmtrain.settings.config import LogConfig, TrainConfig
from llmtrain.settings.presets import read_config
from llmtrain.studies.comparison import Run
from llmtrain.studies.leaderboard_runs import configurations, ended, run_all
from llmtrain.studies.standings import Standing, standard_error, standing
from llmtrain.studies.strengths import curves, readings

TARGETS = ("0.26", "0.15", "0.45", "annealed")
BETAS = (0.05, 0.02, 0.2, 0.0, 0.1, 0.01)
"""Coefficients of kl_ref; with 0 it is GRPO."""
METRICS = ("reward", "avg@8", "pass@8")
HEADINGS = ("entropy", "target error", *METRICS)
DOCS = Path(__file__).parent.parent / "docs"


def thermostats(mode: str, steps: int) -> list[Entry]:
    """Return the entries of one mode of thermostat, one per target."""
    targets = [f"cosine(0.45, 0.15, {steps})" if target == "annealed" else float(target) for target in TARGETS]
    return [Entry("thermostat", {"mode": mode, "target": target}) for target in targets]


def rounds(steps: int) -> list[list[Entry]]:
    """Return the entries of each part of the experiment, most important first."""
    penalties = [Entry("kl_ref", {"beta": beta}) for beta in BETAS]
    modes = [thermostats(mode, steps) for mode in ("anchor", "bonus", "anchor+bonus")]
    first = [*chain(*zip(*modes, penalties, strict=False)), *penalties[len(TARGETS) :]]
    same = Entry("kl_ref", {"beta": 0.05, "estimator": "k2"})
    return [first, [*thermostats("both", steps), *thermostats("reweight", steps), same]]


def settings(out: Path, steps: int) -> TrainConfig:
    """Return the settings that all runs share."""
    flags = f"--preset countdown-cpu --steps {steps} --threads 1 --save-every 40 --eval.every {steps}"
    words = [*flags.split(), "--task.test-problems", "512"]
    base = read_config(words, "benchmarks/anchor.py", out=str(out))
    return replace(base, log=LogConfig(tensorboard=False))


def queue(base: TrainConfig, out: Path, seeds: int) -> list[TrainConfig]:
    """Return all runs in order: part by part, in each part seed by seed."""
    return [
        configurations(base, entry, [seed], out)[0]
        for entries in rounds(base.steps)
        for seed in range(seeds)
        for entry in entries
    ]


def train(base: TrainConfig, out: Path, seeds: int, minutes: float) -> int:
    """Train the unfinished runs one after another until the time is over; return how many are left.

    Raises RuntimeError with the error of a run that fails.
    """
    began, left = time.monotonic(), [config for config in queue(base, out, seeds) if not ended(config)]
    while left and time.monotonic() - began < 60 * minutes:
        failures = run_all(left[:1], workers=1)
        if failures:
            raise RuntimeError(f"{left[0].out}: {failures[left[0].out]}")
        left = left[1:]
    return len(left)


def finished(base: TrainConfig, out: Path, seeds: int) -> list[Standing]:
    """Return the standings of the entries whose runs have all finished."""
    found: list[Standing] = []
    for entries in rounds(base.steps):
        for entry in entries:
            configs = configurations(base, entry, range(seeds), out)
            if all(ended(config) for config in configs):
                found.append(standing(entry, [Run.read(config.out) for config in configs], {}))
    return found


def coefficient(base: TrainConfig, out: Path, seeds: int, entry: Entry) -> float:
    """Return the mean penalty coefficient in the last third of an entry's runs; NaN without one."""
    runs = [Run.read(config.out) for config in configurations(base, entry, range(seeds), out)]
    return sum(run.late("thermostat/anchor") for run in runs) / len(runs)


def results(base: TrainConfig, out: Path, seeds: int) -> dict:
    """Return the numbers of the page: of each entry by seed, and those of `kl_ref` at the entropies reached."""
    standings = finished(base, out, seeds)
    noise = {
        metric: standard_error(standings, metric) if seeds > 1 else 0.0
        for metric in ("entropy", "target_error", *METRICS)
    }
    penalties = [curve for curve in curves(standings) if curve.name == "kl_ref"]
    entries = []
    for s in standings:
        row = {"controller": s.entry.controller, "args": dict(s.entry.args), "target": s.target}
        row |= {"values": {metric: [round(float(x), 5) for x in values] for metric, values in s.values.items()}}
        if s.entry.controller == "thermostat":
            found = readings(penalties, s.mean("entropy"), METRICS, noise)
            if found:
                means = {metric: round(mean, 5) for metric, mean in found[0].means.items()}
                errors = {metric: round(error, 5) for metric, error in found[0].errors.items()}
                row["kl_ref"] = {"beta": round(found[0].value, 5), "means": means, "errors": errors}
            if "anchor" in s.entry.args["mode"]:
                row["coefficient"] = round(coefficient(base, out, seeds, s.entry), 5)
        entries.append(row)
    count = sum(len(part) for part in rounds(base.steps))
    return {"steps": base.steps, "seeds": seeds, "entries of": count, "standard errors": noise, "entries": entries}


def page(found: dict) -> str:
    """Return the tables in Markdown."""
    noise = found["standard errors"]
    lines = [
        "# A solved penalty to the reference policy",
        "",
        "Made by `python benchmarks/anchor.py --page`, whose docstring has the setting and what a null result is.",
        f"{found['steps']} rollout steps, seeds: {found['seeds']}; {len(found['entries'])} of "
        f"{found['entries of']} entries have finished.",
        "± is the standard error of each number in a column, from the variance between seeds, pooled over entries; "
        "0 with one seed, which has none.",
        "",
        "| controller | "
        + " | ".join(f"{name} ±{noise[name.replace(' ', '_')]:.3f}" for name in HEADINGS)
        + " | coefficient | `kl_ref` at this entropy: coefficient, "
        + ", ".join(METRICS)
        + " |",
        "|" + "---|" * (len(HEADINGS) + 3),
    ]
    for row in found["entries"]:
        told = ", ".join(f"{key}={value}" for key, value in row["args"].items())
        means = [_mean(row["values"].get(name.replace(" ", "_"))) for name in HEADINGS]
        solved = f"{row['coefficient']:.3f}" if "coefficient" in row else ""
        other = row.get("kl_ref")
        read = ""
        if other:
            pairs = [f"{other['means'][m]:.3f} ±{other['errors'][m]:.3f}" for m in METRICS]
            read = ", ".join([f"{other['beta']:.3f}", *pairs])
        lines.append(f"| `{row['controller']}` {told} | {' | '.join(means)} | {solved} | {read} |")
    return "\n".join(lines) + "\n"


def _mean(values: list[float] | None) -> str:
    return f"{sum(values) / len(values):.3f}" if values else ""


def main() -> None:
    """Train, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/anchor"), help="folder of the runs")
    parser.add_argument("--steps", type=int, default=240, help="rollout steps of a run")
    parser.add_argument("--seeds", type=int, default=3, help="runs of an entry, from seed 0")
    parser.add_argument("--minutes", type=float, default=50.0, help="time after which no run is started")
    parser.add_argument("--page", action="store_true", help="write docs/anchor.json and docs/anchor.md")
    given = parser.parse_args()
    out = given.out.absolute()
    base = settings(out, given.steps)
    if given.page:
        found = results(base, out, given.seeds)
        if not found["entries"]:
            raise SystemExit(f"no entry in {out} has finished {given.seeds} seeds: train, or lower --seeds")
        (DOCS / "anchor.json").write_text(json.dumps(found, indent=1) + "\n")
        (DOCS / "anchor.md").write_text(page(found))
        print(DOCS / "anchor.md")
        return
    print(f"process {os.getpid()}", flush=True)
    left = train(base, out, given.seeds, given.minutes)
    print(f"{left} runs left: the same command continues" if left else "all runs finished", flush=True)


if __name__ == "__main__":
    main()
