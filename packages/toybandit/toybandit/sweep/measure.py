"""Measurement of a call: a row for each of its runs."""

import warnings
from typing import Any

import numpy as np
import torch

from entrostat import CompositionWarning
from entrostat.numbers.pi_control import settling_time

from ..config import Config
from ..control import build_controller
from ..frontier import best_reward, mean_entropy, mean_reward
from ..simulator import simulate
from ..trajectory import Array, Trajectory, last_third
from .cells import Call, Cell

SETTLED = 0.05
"""Largest distance from its target at which an entropy counts as settled, nats."""
Row = dict[str, Any]


def measure(call: Call) -> list[Row]:
    """Simulate a call and return a row for each run with its settings, its `results`, and warnings as `note`.

    The target is the controller's, its default if none was given; of one that moves, the mean over the last third. A
    run that cannot run in its environment, or that diverges, has no results, and the reason as `error`.
    """
    targets = targets_of(call.config, len(call.cells))
    asked = [{**_asked(cell), "target": _plain(target)} for cell, target in zip(call.cells, targets, strict=True)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CompositionWarning)
        try:
            trajectory = simulate(call.config, call.seeds)
        except ValueError as error:
            return [{**row, "error": str(error), "note": ""} for row in asked]
    moving = trajectory.target
    if moving is not None:
        asked = [
            {**row, "target": _plain(target)} for row, target in zip(asked, last_third(moving).mean(1), strict=True)
        ]
    found, diverged = results(trajectory, targets if moving is None else moving), trajectory.diverged
    note = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    return [
        {**row, "error": diverged[run], "note": note}
        if run in diverged
        else {**row, **{name: _plain(values[run]) for name, values in found.items()}, "error": "", "note": note}
        for run, row in enumerate(asked)
    ]


def results(trajectory: Trajectory, target: Array) -> dict[str, Array]:
    """Return the results of each run, (runs,) each. Undefined results are NaN.

    target: target entropy (runs,), or at each rollout (runs, rollouts); NaN without one.
    All are at the sampling temperature; `…_at_1` are of the policy itself, where it is sampled at another. *_held are
    means over the last third of the rollouts, target_error is that of entropy − target. frontier is the highest reward
    possible at the run's final entropy, gap is frontier − reward_final; all three are NaN for episodes. settling is the
    first rollout from which the entropy stays within ±SETTLED of the target; infinity if never. held_out_pass@1 and @8
    are of the final policy, where prompts are held out.
    """
    path = np.broadcast_to(target if target.ndim == 2 else target[:, None], trajectory.reward.shape)
    aims = np.column_stack([path[:, :1], path])
    found = {
        "entropy_initial": trajectory.entropy[:, 0],
        "entropy_final": trajectory.entropy[:, -1],
        "entropy_held": trajectory.entropy_held,
        "target_error": trajectory.entropy_held - last_third(path).mean(1),
        "settling": settling(trajectory.entropy - aims),
        "reward_initial": trajectory.reward[:, 0],
        "reward_held": trajectory.reward_held,
    }
    if trajectory.held_out is not None:
        found |= {f"held_out_pass@{k}": trajectory.held_out.pass_at(k)[:, -1] for k in (1, 8)}
    if trajectory.config.environment().length > 1:
        return found | dict.fromkeys(("reward_final", "frontier", "gap"), np.full(trajectory.runs, np.nan))
    found |= finals(trajectory.sampled, trajectory.success)
    if "temperature" not in trajectory.metrics:
        return found
    found["entropy_final_at_1"] = mean_entropy(trajectory.probabilities)
    return found | {f"{name}_at_1": x for name, x in finals(trajectory.probabilities, trajectory.success).items()}


def finals(probabilities: Array, success: Array) -> dict[str, Array]:
    """Return reward, frontier and gap of policies (runs, rows, K), (runs,) each."""
    reward, final = mean_reward(probabilities, success), mean_entropy(probabilities)
    finite, frontier = np.isfinite(final), np.full(len(final), np.nan)
    highest = np.log(success.shape[-1])
    frontier[finite] = best_reward(success[finite], np.minimum(final[finite], highest))
    return {"reward_final": reward, "frontier": frontier, "gap": frontier - reward}


def settling(errors: Array, band: float = SETTLED) -> Array:
    """Return the steps until errors (..., steps) stay in ±band (nats), (...,): infinity if never, NaN if all NaN."""
    steps = settling_time(torch.as_tensor(errors), band).numpy()
    return np.where(np.isnan(errors).all(-1), np.nan, np.where(steps < errors.shape[-1], steps, np.inf))


def targets_of(config: Config, runs: int) -> Array:
    """Return the target of each run, (runs,), nats: the controller's default if none was given, NaN if it has none.

    A moving target has its value at the first rollout, with 1 nat as the entropy of that rollout.

    Raises ValueError, one line, on a controller that cannot be built.
    """
    controller = build_controller(config, runs)
    target = next((p.target for p in (controller.surrogate, *controller.parts) if hasattr(p, "target")), np.nan)
    return np.broadcast_to(torch.as_tensor(target, dtype=torch.float64).numpy(), runs)


def _plain(x: float) -> float | None:
    """Return a float, or None for NaN."""
    return None if np.isnan(x) else float(x)


def _asked(cell: Cell) -> Row:
    """Return the settings of a cell as columns of its row."""
    asked = {**cell.config.resolved(), "env": cell.config.env}
    args = {f"args.{key}": value for key, value in asked.pop("controller_args").items()}
    return {"cell": cell.key, **asked, "seed": cell.seed, **args}
