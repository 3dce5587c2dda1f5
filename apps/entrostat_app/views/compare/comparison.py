"""Results of several contenders on the same seeds: standings with their spread, pictures and a note."""

import copy
import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from toybandit import Trajectory, simulate
from toybandit.leaderboard.standings import Estimate, Standing, standings
from toybandit.sweep.measure import SETTLED, results, targets_of

from ...shared import charts, exports
from ...shared.charts import Panel, Picture
from .contenders import MOST, Contender

MEASURES = {
    "entropy": ("entropy", "Mean entropy of the final policy over states, nats."),
    "target_error": (
        "target error",
        "Distance of the mean entropy over the last third of the rollouts from the target, nats.",
    ),
    "reward": ("reward", "Expected reward of the final policy."),
    "gap": ("gap", "Distance of the reward below the frontier: the highest reward of any policy with this entropy."),
    "settling": (
        "settling",
        f"Rollouts until the entropy stays within ±{SETTLED:g} nats of the target, median over seeds.",
    ),
}
"""Title and meaning of the table's columns, by field of Standing."""
HELD_OUT_KS = (1, 8)
"""Values of k for pass@k on held-out prompts."""
NOTED = 5e-4
"""Smallest gap to the frontier that the note mentions."""
TARGET = "target"
"""Series name of the page's target."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Contender with its runs."""

    contender: Contender
    trajectory: Trajectory
    numbers: Mapping[str, np.ndarray]
    """`toybandit.sweep.measure.results`: one number per run."""

    @property
    def name(self) -> str:
        return self.contender.name

    @property
    def is_episodic(self) -> bool:
        """True if responses have several tokens; the final reward and the frontier are then unknown."""
        return self.contender.config.environment().length > 1

    @cached_property
    def final_entropy(self) -> np.ndarray:
        """Mean entropy of the policy of `final_reward`, (runs,), nats."""
        if self.trajectory.held_out is not None:
            return self.trajectory.held_out.entropy[:, -1]
        return self.trajectory.entropy[:, int(self.path["rollout"].iloc[-1])]

    @cached_property
    def final_reward(self) -> np.ndarray:
        """Expected reward at the end of each run, (runs,): of the final policy, or for episodes the one before it.

        With held-out prompts: pass@1 on them.
        """
        if self.trajectory.held_out is not None:
            return self.trajectory.held_out.pass_at(1)[:, -1]
        return self.trajectory.reward[:, -1] if self.is_episodic else self.numbers["reward_final"]

    @cached_property
    def path(self) -> pd.DataFrame:
        """Mean entropy and reward over runs before each rollout, and at the end: columns rollout, entropy, reward.

        With held-out prompts: entropy and pass@1 on them, since the others change from rollout to rollout.
        """
        unseen = self.trajectory.held_out
        if unseen is not None:
            means = {"entropy": unseen.entropy.mean(0), "reward": unseen.pass_at(1).mean(0)}
            return pd.DataFrame({"rollout": unseen.rollouts, **means})
        reward = self.trajectory.reward
        if not self.is_episodic:
            reward = np.column_stack([reward, self.final_reward])
        steps = np.arange(reward.shape[1])
        entropy = self.trajectory.entropy[:, steps].mean(0)
        return pd.DataFrame({"rollout": steps, "entropy": entropy, "reward": reward.mean(0)})


def short_names(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return the names of contenders in pictures: without their settings, where the controller is in no other name."""
    first = {found.name: found.contender.controller for found in outcomes}
    short = {name: first[name] if name.startswith(f"{first[name]} ") else name for name in first}
    return {name: text if list(short.values()).count(text) == 1 else name for name, text in short.items()}


def outcome(contender: Contender, trajectory: Trajectory) -> Outcome:
    """Return a contender with its numbers. Raises ValueError in one line if a run diverged."""
    if trajectory.diverged:
        raise ValueError(next(iter(trajectory.diverged.values())))
    target = targets_of(contender.config, trajectory.runs) if trajectory.target is None else trajectory.target
    return Outcome(contender, trajectory, results(trajectory, target))


def obstacle(contender: Contender) -> str:
    """Return the reason why the controller cannot run in its bandit; empty if it can."""
    try:
        simulate(dataclasses.replace(contender.config, rollouts=1), [0], predict=True)
    except ValueError as error:
        return str(error)
    return ""


def commands(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the command that repeats each contender; several commands have an output folder each."""
    found = [exports.run_command(outcome.contender.config, outcome.trajectory.seeds) for outcome in outcomes]
    if len(found) == 1:
        return found
    folders = [f"runs/{n}-{re.sub(r'[^a-zA-Z0-9.+_-]+', '-', o.name)}" for n, o in enumerate(outcomes, 1)]
    return [f"{command} --out {folder}" for command, folder in zip(found, folders, strict=True)]


def ranked(outcomes: Sequence[Outcome]) -> list[Standing]:
    """Return standings as on the leaderboard, highest reward first."""
    entries = []
    for found in outcomes:
        runs = range(found.trajectory.runs)
        rows = [{name: values[run] for name, values in found.numbers.items()} for run in runs]
        entries.append((found.contender, [{**row, "error": "", "note": ""} for row in rows]))
    return standings(entries)


def table(found: Sequence[Standing]) -> pd.DataFrame:
    """Return a row per contender: value, low and high of each of MEASURES; NaN if missing, infinity for never."""
    rows: list[dict[str, Any]] = []
    for standing in found:
        row: dict[str, Any] = {"contender": standing.entry.name}
        for name in MEASURES:
            estimate = getattr(standing, name) or Estimate(np.nan, np.nan, np.nan)
            row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        rows.append(row | {"same_as": standing.same_as})
    return pd.DataFrame(rows)


def over_time(outcomes: Sequence[Outcome], target: float | None) -> Picture:
    """Return the picture of entropy and reward over the rollouts, with bands over all seeds and one legend.

    Below them is pass@k on held-out prompts, if a bandit has some.

    target: drawn as a line if a contender holds it and a colour is left for it; otherwise the first target that moves.
    """
    short = short_names(outcomes)
    entropy = {short[found.name]: found.trajectory.entropy for found in outcomes}
    paths = [f.trajectory.target for f in outcomes if isinstance(f.contender.config.target, str)]
    if len(entropy) < MOST and TARGET not in entropy:
        if target is not None and holders(outcomes, target):
            steps = max(values.shape[1] for values in entropy.values())
            entropy[TARGET] = np.full((1, steps), target)
        elif paths and paths[0] is not None:
            mean = paths[0].mean(0, keepdims=True)
            entropy[TARGET] = np.column_stack([mean, mean[:, -1:]])
    trajectories = {short[found.name]: found.trajectory for found in outcomes}
    reward = {name: found.reward for name, found in trajectories.items()}
    panels = [
        Panel(title="Entropy H (nats)", frame=charts.bands(entropy)),
        Panel(title="Expected reward", frame=charts.bands(reward)),
        *(panel for k in HELD_OUT_KS if (panel := charts.held_out(trajectories, k))),
    ]
    return one_legend(charts.linked(panels, "rollout", height=160), columns=3 if max(map(len, entropy)) < 14 else 1)


def one_legend(picture: Picture, columns: int) -> Picture:
    """Return a picture of panels with the same series with only the first legend, in this number of columns."""
    spec, look = copy.deepcopy(dict(picture.spec)), {"columns": columns, "labelLimit": 300}
    for number, panel in enumerate(spec["vconcat"]):
        for layer in panel["layer"]:
            for channel in ("color", "strokeDash"):
                encoding = layer["encoding"].get(channel, {})
                if encoding.get("legend"):
                    encoding["legend"] = {**encoding["legend"], **look} if number == 0 else None
    return dataclasses.replace(picture, spec=spec)


def holders(outcomes: Sequence[Outcome], target: float) -> list[Outcome]:
    """Return the outcomes of contenders with this target."""
    return [found for found in outcomes if found.contender.config.target == target]


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the start and the end of each contender, in words."""
    parts = [
        f"{found.name} from {found.path['entropy'].iloc[0]:.2f} to {found.path['entropy'].iloc[-1]:.2f} nats, "
        f"reward {found.path['reward'].iloc[0]:.2f} to {found.path['reward'].iloc[-1]:.2f}"
        for found in outcomes
    ]
    return f"Mean over {outcomes[0].trajectory.runs} seeds: " + "; ".join(parts) + "."


def on_paths(outcomes: Sequence[Outcome]) -> str:
    """Return a sentence on the limit or the meaning of the paths; empty for episodes."""
    if any(found.trajectory.held_out for found in outcomes):
        return "Entropy and reward, here pass@1, are those of the held-out prompts."
    return "" if all(found.is_episodic for found in outcomes) else "No policy can be above the grey frontier."


def on_held_out(outcomes: Sequence[Outcome]) -> str:
    """Return the ends of pass@k on held-out prompts, in words; empty if no bandit has such prompts."""
    k = HELD_OUT_KS[-1]
    ends = {f.name: f.trajectory.held_out.pass_at(k)[:, [0, -1]].mean(0) for f in outcomes if f.trajectory.held_out}
    parts = [f"{name} from {first:.2f} to {last:.2f}" for name, (first, last) in ends.items()]
    return f"pass@{k} on prompts that are never trained: {', '.join(parts)}." if parts else ""


def notice(found: Sequence[Standing]) -> str:
    """Return a note made from the numbers of standings, highest reward first; empty if nothing stands out."""
    rewarded = [s for s in found if s.reward and np.isfinite(s.reward.value)]
    parts = []
    gaps = sorted((s.gap.value, s.entry.name) for s in rewarded if s.gap)
    if len(gaps) > 1 and gaps[-1][0] >= NOTED:
        best = rewarded[0]
        assert best.reward
        assert best.entropy
        parts.append(
            f"{best.entry.name} ends with the highest reward, {best.reward.value:.3f} at {best.entropy.value:.2f} nats."
        )
        close = [s.entry.name for s in rewarded[1:] if s.reward and s.reward.high >= best.reward.low]
        if close:
            parts.append(f"With other seeds {', '.join(close)} may be first: the intervals overlap.")
        parts.append(f"Furthest below the frontier is {gaps[-1][1]}, by {gaps[-1][0]:.3f}.")
    aimed = sorted((s.target_error.value, s.entry.name) for s in found if s.target_error)
    if aimed:
        parts.append(f"Closest to its target is {aimed[0][1]}, off by {aimed[0][0]:.3f} nats in the last third.")
    if len(aimed) > 1:
        parts.append(f"Furthest from its target is {aimed[-1][1]}, off by {aimed[-1][0]:.3f}.")
    twins = [f"{s.entry.name} and {s.same_as}" for s in found if s.same_as]
    if twins:
        parts.append(f"Identical numbers: {', '.join(twins)}.")
    return " ".join(parts)
