"""From a call to a row for each of its runs."""

import warnings
from typing import Any

import numpy as np
import torch

from entrostat import CompositionWarning
from entrostat.pi_control import settling_time

from ..config import Config
from ..control import build_controller
from ..frontier import best_reward, mean_entropy, mean_reward
from ..simulator import simulate
from ..trajectory import Array, Trajectory
from .cells import Call, Cell

SETTLED = 0.05
"""How near to its target an entropy must stay to have settled, nats."""
Row = dict[str, Any]


def measure(call: Call) -> list[Row]:
    """Simulate a call: a row for each of its runs, with what was asked for, its `results`, and warnings as `note`.

    The target is the one that the controller has, its own default where none was asked for. What cannot run in its
    environment, or diverges, has no results, and the reason as `error`.
    """
    targets = targets_of(call.config, len(call.cells))
    asked = [{**_asked(cell), "target": _plain(target)} for cell, target in zip(call.cells, targets, strict=True)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CompositionWarning)
        try:
            trajectory = simulate(call.config, call.seeds)
        except ValueError as error:
            return [{**row, "error": str(error), "note": ""} for row in asked]
    found, diverged = results(trajectory, targets), trajectory.diverged
    note = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    return [
        {**row, "error": diverged[run], "note": note}
        if run in diverged
        else {**row, **{name: _plain(values[run]) for name, values in found.items()}, "error": "", "note": note}
        for run, row in enumerate(asked)
    ]


def results(trajectory: Trajectory, target: Array) -> dict[str, Array]:
    """What came of each run, (runs,) each; target (runs,), NaN without one. NaN where there is nothing to say.

    *_held are means over the last third of the rollouts, target_error is entropy_held − target. frontier is the highest
    reward possible at the run's final entropy and gap what the final policy is below it: neither is known of episodes.
    settling is the first rollout from which the entropy stays within ±SETTLED of the target; infinity is never.
    """
    found = {
        "entropy_initial": trajectory.entropy[:, 0],
        "entropy_final": trajectory.entropy[:, -1],
        "entropy_held": trajectory.entropy_held,
        "target_error": trajectory.entropy_held - target,
        "settling": settling(trajectory.entropy - target[:, None]),
        "reward_initial": trajectory.reward[:, 0],
        "reward_held": trajectory.reward_held,
    }
    if trajectory.config.environment().length > 1:
        return found | dict.fromkeys(("reward_final", "frontier", "gap"), np.full(trajectory.runs, np.nan))
    reward = mean_reward(trajectory.probabilities, trajectory.success)
    final = mean_entropy(trajectory.probabilities)
    finite, frontier = np.isfinite(final), np.full(trajectory.runs, np.nan)
    highest = np.log(trajectory.success.shape[-1])
    frontier[finite] = best_reward(trajectory.success[finite], np.minimum(final[finite], highest))
    return found | {"reward_final": reward, "frontier": frontier, "gap": frontier - reward}


def settling(errors: Array, band: float = SETTLED) -> Array:
    """Steps until errors (..., steps) stay within ±band (nats), (...,): infinity for never, NaN where all are NaN."""
    steps = settling_time(torch.as_tensor(errors), band).numpy()
    return np.where(np.isnan(errors).all(-1), np.nan, np.where(steps < errors.shape[-1], steps, np.inf))


def targets_of(config: Config, runs: int) -> Array:
    """The target of each run, (runs,), nats: the controller's own where none was asked for, NaN where it has none.

    Raises ValueError, one line, on a controller that cannot be built.
    """
    controller = build_controller(config, runs)
    target = next((p.target for p in (controller.surrogate, *controller.parts) if hasattr(p, "target")), np.nan)
    return np.broadcast_to(torch.as_tensor(target, dtype=torch.float64).numpy(), runs)


def _plain(x: float) -> float | None:
    """None for NaN."""
    return None if np.isnan(x) else float(x)


def _asked(cell: Cell) -> Row:
    """Everything that was asked for."""
    asked = {**cell.config.resolved(), "env": cell.config.env}
    args = {f"args.{key}": value for key, value in asked.pop("controller_args").items()}
    return {"cell": cell.key, **asked, "seed": cell.seed, **args}
