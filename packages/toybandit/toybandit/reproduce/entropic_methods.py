"""EntroPIC, figures 6 and 7: control compared with other methods, on- and off-policy."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from ..trajectory import Trajectory
from ..uncertainty import Measured, mean
from .curves import curves, stack, train
from .entropic import ENVIRONMENTS, LONG, OFF, ON, TARGET, entropy_panels, error_at_end
from .registry import Effort, Measurement, figure

METHODS: dict[str, dict[str, Any]] = {
    "GRPO": {"controller": "grpo"},
    "Clip-Cov": {"controller": "clip_cov"},
    "negatives only": {"controller": "negative_only"},
    "adaptive bonus": {
        "controller": "adaptive_entropy",
        "target": TARGET,
        "controller_args": {"delta": 0.005, "coef_max": 0.1},
    },
    "EntroPIC": {
        "controller": "entropic",
        "target": TARGET,
        "controller_args": {"kp": 1.0, "ki": 0.05, "tau": 0.5},
    },
}
"""Methods of the figure. KL-Cov is left out: strictly on-policy it has no gradient."""


def draw_methods(canvas: Figure, data: Measurement) -> None:
    panels = entropy_panels(canvas, data)
    canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)


@figure(
    "entropic-6",
    source="EntroPIC, figures 6 and 7",
    shows="entropy under five methods, on- and off-policy (dotted: the target, for methods with one)",
    changes_if="an entropy grew on-policy, or a method with a target ended two standard errors and .05 nats from it",
    draw=draw_methods,
)
def methods(effort: Effort) -> Measurement:
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    for env_name, env in ENVIRONMENTS.items():
        runs: dict[str, Trajectory] = {
            name: train(effort, env=env, rollouts=effort.of(LONG, 120), **changes) for name, changes in METHODS.items()
        }
        rows.append({"panel": env_name, **curves(runs)})
        for name, run in runs.items():
            error = error_at_end(run)
            numbers[f"end, {name}, {env_name}"] = Measured(TARGET + error, error.error)
            numbers[f"reward, {name}, {env_name}"] = mean(run.reward[:, -1])
    on, off = (", ".join(f"{name} {numbers[f'end, {name}, {env}']:.2f}" for name in METHODS) for env in (ON, OFF))
    found = (
        "In the paper, Clip-Cov and negatives only lose control on-policy (their entropy grows), the adaptive bonus "
        f"stays above its target, and EntroPIC holds it. Here, in nats at the end with a target of {TARGET:g}: "
        f"on-policy {on}; off-policy {off}. No entropy grows on-policy, where negatives only equals GRPO with smaller "
        "steps; the adaptive bonus and EntroPIC end at the target."
    )
    return Measurement(stack(rows), numbers, found)
