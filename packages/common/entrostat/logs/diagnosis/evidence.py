"""Results of committed studies that rules refer to. They are in evidence.json; no number is typed here.

`python benchmarks/evidence.py` makes that file from docs/data/findings and the leaderboards' pages.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

from ..runlog import HOLDS_WITHIN

PATH = Path(__file__).with_name("evidence.json")
SCORES = ("pass@8", "avg@8", "reward")
HIGHER, LOWER, ALIKE = "higher", "lower", "cannot be told apart"
NOTABLE = 3.0
"""Standard errors of a difference between rows of a leaderboard above which they are told apart."""
MODEL = "one small model on Countdown"


@dataclass(frozen=True)
class Found:
    """Result that a rule refers to."""

    lines: tuple[str, ...]
    """Its numbers, a sentence each; empty if there is none."""
    supports: bool
    """True if it supports the rule's advice."""
    values: tuple[float, ...] = ()
    """Values of the hyperparameter that it supports, ascending; of a target, as a share of the entropy at the start."""


@cache
def results() -> dict[str, Any]:
    """Return the contents of evidence.json."""
    content: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return content


def find(kind: str, **of: Any) -> Found:
    """Return the result of a kind in FINDERS, with the arguments that a rule gives it."""
    return FINDERS[kind](**of)


def paid(controller: str, moves: str, fixed: Mapping[str, Any] | None = None) -> Found:
    """Return what a controller gained over GRPO, by the value of the hyperparameter `moves`.

    A value is supported if pass@8 is higher than GRPO's and neither avg@8 nor reward is lower, beyond intervals that
    hold for all entries of the study together, in every entry with this value.
    """
    lines, supported, refuted = [], set[float](), set[float]()
    for study in results()["studies"].values():
        entries = [
            entry
            for entry in study["entries"]
            if entry["controller"] == controller
            and (fixed or {}).items() <= entry["args"].items()
            and isinstance(entry["args"].get(moves), int | float)
        ]
        for entry in sorted(entries, key=lambda entry: float(entry["args"][moves])):
            value = entry["args"][moves]
            share = round(value / study["start"], 3) if moves == "target" else value
            (supported if _pays(entry) else refuted).add(share)
            lines.append(f"{_setting(entry['args'], moves, share, fixed or {})}, {_results(entry)}")
        if entries:
            count = len(study["entries"])
            lines.append(f"{_protocol(study)}; differences from GRPO, 95% intervals for all {count} rules together")
    values = tuple(sorted(supported - refuted))
    return Found(tuple(lines), bool(values), values)


def _pays(entry: Mapping[str, Any]) -> bool:
    verdicts = [entry[score]["verdict"] for score in SCORES]
    return verdicts[0] == HIGHER and LOWER not in verdicts


def _setting(args: Mapping[str, Any], moves: str, share: float, fixed: Mapping[str, Any]) -> str:
    """Return the settings of an entry that tell it from others; a target also as a share of the start."""
    rest = [f"{key} {value}" for key, value in args.items() if key != moves and key not in fixed]
    own = f"{moves} {args[moves]:g}" + (f" nats ({share:.2f} of the start)" if moves == "target" else "")
    return ", ".join([*rest, own])


def _results(entry: Mapping[str, Any]) -> str:
    told = []
    for score in SCORES:
        size = f"{entry[score]['difference']:+.3f} ± {entry[score]['half']:.3f}"
        apart = entry[score]["verdict"] in (HIGHER, LOWER)
        told.append(f"{score} {size}" if apart else f"{score} {ALIKE} ({size})")
    return f"entropy {entry['entropy']:.2f} nats: {', '.join(told)}"


def held(controllers: Sequence[str]) -> Found:
    """Return how far the controllers missed their targets on the leaderboards, beside all others with a target.

    It supports the rule if each was within HOLDS_WITHIN of its target.
    """
    lines, within = [], []
    for page in results()["pages"].values():
        error = page["errors"]["target error"]
        ours = [row for row in page["held"] if row["controller"] in controllers]
        others = [row["target error"] for row in page["held"] if row["controller"] not in controllers]
        if not ours or not others:
            continue
        within += [row["target error"] <= HOLDS_WITHIN * row["target"] for row in ours]
        worst = max(row["target error"] for row in ours)
        apart = sum(off - worst > NOTABLE * sqrt(2) * error for off in others)
        lines.append(
            f"{' and '.join(controllers)} ended at most {worst:.3f} ± {error:.3f} nats from {_targets(ours)}; other "
            f"loops {min(others):.3f} to {max(others):.3f}, of which {apart} of {len(others)} are told apart from it"
        )
        lines.append(f"{_protocol(page)}; ± is one standard error over seeds")
    return Found(tuple(lines), bool(within) and all(within))


def _targets(rows: Sequence[Mapping[str, Any]]) -> str:
    targets = sorted({row["target"] for row in rows})
    return f"{'targets' if len(targets) > 1 else 'a target'} of {' and '.join(f'{target:g}' for target in targets)}"


def alike(controller: str) -> Found:
    """Return the entropies of a controller beside GRPO's; it supports the rule if none is told apart."""
    lines, apart = [], []
    for page in results()["pages"].values():
        error = sqrt(2) * page["errors"]["entropy"]
        baseline = next(row["entropy"] for row in page["entries"] if row["controller"] == "ppo")
        for row in page["entries"]:
            if row["controller"] == controller:
                difference = row["entropy"] - baseline
                apart.append(abs(difference) > NOTABLE * error)
                values = f" ({row['values']})" if row["values"] else ""
                verdict = "" if apart[-1] else f", {ALIKE}"
                lines.append(f"{controller}{values}: entropy {difference:+.3f} ± {error:.3f} nats from GRPO's{verdict}")
        lines.append(f"{_protocol(page)}; ± is one standard error of a difference")
    return Found(tuple(lines), bool(apart) and not any(apart))


def none() -> Found:
    """Return that there is no result."""
    return Found((), False)


def reported(reports: Sequence[str]) -> Found:
    """Return what others report, which was not measured here."""
    return Found(tuple(f"Reported by others: {report}" for report in reports), False)


def _protocol(study: Mapping[str, Any]) -> str:
    return f"{study['page']}: {MODEL}, {study['steps']} rollout steps, {study['seeds']} seeds"


FINDERS: dict[str, Callable[..., Found]] = {
    "paid": paid,
    "held": held,
    "alike": alike,
    "none": none,
    "reported": reported,
}
"""Kinds of evidence, as rules name them."""
