"""Closed loops whose readings of the entropy are late, noisy, missing or absurd, and whose task or target jumps.

    python -m benchmarks.delays [--seeds 8] [--loops "thermostat, bonus;entropic"] [--write]

In `noisy` (16 arms, 8 updates per rollout), target .6 nats, 300 rollouts. Loops have their defaults, except for rules
whose published steps are too small to move a bandit: LOOPS. Nobody tells a loop that its readings are late.
Disturbances begin after rollout 150.

Per loop and condition, as means over seeds: the root mean square of H − target over the last 60 rollouts, the rollout
from which |H − target| stays below .1 nats, and the largest |H − target| after rollout 150. Null: GRPO, without a loop.

`--write` puts the tables into docs/thermostat.md.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from entrostat import StepStats
from entrostat.controllers.thermostat import Thermostat
from toybandit import Config
from toybandit.simulator import _Simulation
from toybandit.workspace import one_thread

PAGE = Path(__file__).parents[1] / "docs" / "thermostat.md"
TARGET, ROLLOUTS, LAST, FROM, BAND = 0.6, 300, 60, 150, 0.1
UNREACHABLE = 3.0
"""Target above the entropy of a uniform policy, nats."""
DELAYS = (0, 1, 2, 4, 8, 16)
LOOPS: dict[str, tuple[str, dict[str, Any]]] = {
    "thermostat, bonus": ("thermostat", {}),
    "thermostat, reweight": ("thermostat", {"mode": "reweight"}),
    "thermostat, both": ("thermostat", {"mode": "both"}),
    "thermostat, anchor": ("thermostat", {"mode": "anchor"}),
    "thermostat, anchor+bonus": ("thermostat", {"mode": "anchor+bonus"}),
    "adaptive_entropy": ("adaptive_entropy", {"delta": 0.005, "coef_max": 0.1}),
    "entropic": ("entropic", {"kp": 4.0, "ki": 0.05, "tau": 0.5}),
    "positive_reweight": ("positive_reweight", {"delta": 0.05}),
    "repo_r": ("repo_r", {}),
    "adapo": ("adapo", {}),
    "aer": ("aer", {"delta": 0.005, "coef_max": 0.5}),
    "papo": ("papo", {}),
    "papo, band .35": ("papo", {"band": 0.35}),
    "stare": ("stare", {"delta": 0.01, "both_signs": True}),
    "adaptive_clip": ("adaptive_clip", {"delta": 0.05, "eps": 0.2}),
    "GRPO, no loop": ("grpo", {}),
}
Seen = list[Tensor]
"""Entropy of each rollout so far, (runs,) each."""


def late(delay: int) -> Callable[[Seen, int], Tensor]:
    return lambda seen, step: seen[max(step - delay, 0)]


def noisy(size: float, delay: int = 0) -> Callable[[Seen, int], Tensor]:
    def read(seen: Seen, step: int) -> Tensor:
        g = torch.Generator().manual_seed(step)
        noise = size * torch.randn(seen[0].shape, generator=g, dtype=torch.float64)
        return (late(delay)(seen, step) + noise).clamp(min=0)

    return read


def instead(value: float, steps: Callable[[int], bool]) -> Callable[[Seen, int], Tensor]:
    return lambda seen, step: torch.full_like(seen[step], value) if steps(step) else seen[step]


OTHER_TASK, OUT_OF_REACH, MISTAKEN = "another task", "target out of reach", "drift of −.5 by mistake"
CONDITIONS: dict[str, Callable[[Seen, int], Tensor]] = {
    **{f"{delay} rollout{'s' * (delay > 1)} late" if delay else "undisturbed": late(delay) for delay in DELAYS},
    "noise of .05 nats": noisy(0.05),
    "that noise, 8 late": noisy(0.05, 8),
    "every third reading NaN": instead(torch.nan, lambda step: step % 3 == 1),
    "one reading of 1e300": instead(1e300, lambda step: step == FROM),
    "one reading of 100 nats": instead(100.0, lambda step: step == FROM),
    OTHER_TASK: late(0),
    OUT_OF_REACH: late(0),
    MISTAKEN: late(0),
}


class Disturbed(_Simulation):
    """Simulation of `seeds` runs under each condition, side by side."""

    def __init__(self, config: Config, seeds: int) -> None:
        super().__init__(config, [*range(seeds)] * len(CONDITIONS), False, False, False, None, None)
        self.under = {name: slice(i * seeds, (i + 1) * seeds) for i, name in enumerate(CONDITIONS)}

    def step_stats(self, entropy: Tensor, step: int) -> StepStats:
        if step == FROM:
            jump = self.under[OTHER_TASK]
            self.success[jump] = self.success[jump].roll(1, -2)
            self.mislead(self.under[MISTAKEN])
        for part in (self.controller.surrogate, *self.controller.parts):
            if hasattr(part, "target"):
                target = torch.full(entropy.shape, TARGET, dtype=torch.float64)
                target[self.under[OUT_OF_REACH]] = UNREACHABLE if FROM - 60 <= step < FROM else TARGET
                part.target = target
        seen = self.history["entropy"]
        read = torch.cat([CONDITIONS[name](seen, step)[runs] for name, runs in self.under.items()])
        return StepStats(**{**vars(super().step_stats(entropy, step)), "entropy": read, "delay": None})

    def mislead(self, runs: slice) -> None:
        """Give thermostats an estimate that is wrong and certain; other loops have none."""
        for part in self.controller.parts:
            if isinstance(part, Thermostat):
                plants = part.plant.plants
                drift, covariance = plants.drift.clone(), plants.covariance.clone()
                drift[runs] = -0.5
                covariance[runs] *= 1e-9
                part.plant = part.plant._replace(plants=plants._replace(drift=drift, covariance=covariance))


class Held(NamedTuple):
    """Measures of a loop under a condition, (seeds,) each."""

    rms: np.ndarray
    settled: np.ndarray
    worst: np.ndarray


def measure(loop: str, seeds: int) -> dict[str, Held]:
    """Return how a loop held its target, by condition."""
    controller, args = LOOPS[loop]
    target = {} if controller == "grpo" else {"target": TARGET}
    config = Config(env="noisy", controller=controller, controller_args=args, rollouts=ROLLOUTS, **target)
    with torch.no_grad(), one_thread():
        simulation = Disturbed(config, seeds)
        entropy = simulation.run(None).entropy
    return {name: judged(entropy[runs]) for name, runs in simulation.under.items()}


def judged(entropy: np.ndarray) -> Held:
    error = np.abs(entropy - TARGET)
    outside = error > BAND
    settled = np.where(outside.any(-1), error.shape[-1] - outside[:, ::-1].argmax(-1), 0)
    return Held(np.sqrt((error[:, -LAST:] ** 2).mean(-1)), settled, error[:, FROM:].max(-1))


def said(held: Held) -> str:
    settled = f"{held.settled.mean():.0f}" if held.settled.max() <= ROLLOUTS else "never"
    return f"{held.rms.mean():.3f}, {settled}, {held.worst.mean():.2f}"


def tables(found: dict[str, dict[str, Held]]) -> str:
    """Return the tables in Markdown: a row for each loop, a column for each condition."""
    delays = list(CONDITIONS)[: len(DELAYS)]
    parts = []
    for names in (delays, [name for name in CONDITIONS if name not in delays]):
        rows = [[loop, *(said(held[name]) for name in names)] for loop, held in found.items()]
        lines = [["loop", *names], ["---"] * (len(names) + 1), *rows]
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(parts)


def written(page: str, found: str, seeds: int) -> str:
    """Return the page with these tables and number of seeds. Raise ValueError if it does not say how many."""
    page = re.sub(r"(<!-- delays -->).*?(<!-- /delays -->)", lambda m: f"{m[1]}\n{found}\n{m[2]}", page, flags=re.S)
    page, places = re.subn(r"\d+(?= seeds\)\. No loop is told its delay)", str(seeds), page)
    if not places:
        raise ValueError(f"{PAGE.name} has no sentence with the number of seeds")
    return page


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--loops", default=";".join(LOOPS), help="names separated by ;")
    parser.add_argument("--write", action="store_true", help=f"put the tables into docs/{PAGE.name}")
    args = parser.parse_args(argv)
    found = {}
    for loop in args.loops.split(";"):
        found[loop] = measure(loop, args.seeds)
        for name, held in found[loop].items():
            print(f"{loop:26} {name:26} {said(held):24} worst seed {held.rms.max():.3f}", flush=True)
    if args.write:
        PAGE.write_text(written(PAGE.read_text(), tables(found), args.seeds))


if __name__ == "__main__":
    main()
