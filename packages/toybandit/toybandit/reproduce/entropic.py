"""EntroPIC, figures 3, 5 and 11: effect of masking tokens on the entropy, P and PI control, and the threshold τ."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..instruments import weights
from ..trajectory import Trajectory
from ..uncertainty import Measured, mean
from .curves import curves, stack, train
from .drawing import entropy_and_reward, lines
from .registry import Effort, Measurement, figure, out_of_reach
from .touched import train_touched

TARGET = 0.6
"""Target entropy, nats; GRPO reaches the paper's 0.1 without control here."""
LONG = 300
"""Rollouts of a controlled run."""
CONTROL: dict[str, dict[str, float]] = {"P": {"ki": 0.0}, "PI": {"ki": 0.05}}
OFF, ON = "off-policy", "on-policy"
ENVIRONMENTS = {ON: "on", OFF: "noisy"}
CUTS = {"0.95 / 0.05": (0.95, 0.05), "0.8 / 0.2": (0.8, 0.2), "0.5 / 0.5": (0.5, 0.5)}
"""Probabilities above which a token is likely, and up to which it is unlikely."""
SHOWN = "0.8 / 0.2"
THRESHOLDS = (0.0, 0.5, 0.95)

out_of_reach("entropic-1", "scores on mathematics benchmarks; tables 1 to 4 likewise")
out_of_reach("entropic-12", "reflection words in responses")


def error_at_end(run: Trajectory) -> Measured:
    """Return the mean entropy over the last tenth of the rollouts minus TARGET, nats."""
    return mean(run.entropy[:, -(run.reward.shape[1] // 10) :].mean(1) - TARGET)


def controlled(effort: Effort, env: str, **args: Any) -> Trajectory:
    """Train under EntroPIC at TARGET; `args` are its hyperparameters."""
    given = {"kp": 1.0, "ki": 0.05, "tau": 0.5, **args}
    return train(
        effort,
        env=env,
        controller="entropic",
        target=TARGET,
        controller_args=given,
        rollouts=effort.of(LONG, 120),
    )


def kinds(cut: tuple[float, float]) -> dict[str, dict[str, float]]:
    """Return the four kinds of tokens, as regions to mask."""
    high, low = cut
    bounds = {"likely": high, "unlikely": low, "share": 1.0}
    return {
        "likely positives": weights("exploitation", 0.0) | bounds,
        "unlikely positives": weights("exploration", 0.0) | bounds,
        "likely negatives": weights("correction", 0.0) | bounds,
        "unlikely negatives": weights("suppression", 0.0) | bounds,
    }


@figure(
    "entropic-3",
    source="EntroPIC, figure 3",
    shows="training without likely or unlikely, positive or negative tokens",
    changes_if="a mask moved the entropy against its quadrant by two standard errors, or likely tokens had the "
    "largest effect in most settings",
    draw=lambda canvas, data: entropy_and_reward(canvas, data, columns=3),
)
def masked_tokens(effort: Effort) -> Measurement:
    numbers: dict[str, float] = {}
    shown: dict[str, Trajectory] = {}
    for env_name, env in ENVIRONMENTS.items():
        plain = train(effort, env=env)
        numbers[f"all tokens, {env_name}"] = mean(plain.entropy_held)
        regions = {f"{kind}, {cut}": region for cut, at in CUTS.items() for kind, region in kinds(at).items()}
        masked = train_touched(effort, regions, env=env)
        for name, run in masked.items():
            numbers[f"no {name}, {env_name}"] = mean(run.entropy_held - plain.entropy_held)
        if env_name == OFF:
            shown = {"all tokens": plain} | {f"no {kind}": masked[f"{kind}, {SHOWN}"] for kind in kinds(CUTS[SHOWN])}
    names = tuple(kinds(CUTS[SHOWN]))
    strongest = {
        (cut, env): max(names, key=lambda kind: abs(numbers[f"no {kind}, {cut}, {env}"]))
        for cut in CUTS
        for env in ENVIRONMENTS
    }
    unlikely = sum(kind.startswith("unlikely") for kind in strongest.values())
    effects = ", ".join(f"{kind} {numbers[f'no {kind}, {SHOWN}, {OFF}']:+.2f}" for kind in names)
    found = (
        "In the paper, masking likely tokens moves the entropy more than masking unlikely ones. Here all four masks "
        f"move it in the direction of their quadrant ({effects} nats without them), but unlikely tokens have the "
        f"largest effect in {unlikely} of {len(strongest)} settings (three cuts, on- and off-policy): without unlikely "
        "negatives the entropy stays high."
    )
    return Measurement(curves(shown), numbers, found)


def draw_control(canvas: Figure, data: Measurement) -> None:
    panels = canvas.subplots(2, 2, sharex=True, sharey="row")
    for column, (name, part) in enumerate(data.series("panel").items()):
        above, below = panels[:, column]
        lines(above, part, "rollout", "entropy")
        above.axhline(TARGET, color="black", linewidth=0.8, linestyle=":")
        above.set_title(name)
        above.set_ylim(bottom=0)
        lines(below, part, "rollout", "entropic/alpha")
        below.set_xlabel("rollout")
    panels[0, 0].set_ylabel("entropy (nats)")
    panels[1, 0].set_ylabel("coefficient α")
    handles, names = panels[0, 0].get_legend_handles_labels()
    canvas.legend(handles, names, loc="outside upper center", ncols=len(names))


@figure(
    "entropic-5",
    source="EntroPIC, figure 5",
    shows="entropy (dotted: its target) and coefficient without control, with P and with PI control",
    changes_if="P's error were within two standard errors of zero in a case, or PI's as large as P's",
    draw=draw_control,
)
def p_and_pi(effort: Effort) -> Measurement:
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    for env_name, env in ENVIRONMENTS.items():
        runs = {"none": controlled(effort, env, kp=0.0, ki=0.0)}
        runs |= {name: controlled(effort, env, **args) for name, args in CONTROL.items()}
        rows.append({"panel": env_name, **curves(runs, "entropic/alpha")})
        for name, run in runs.items():
            numbers[f"error of {name}, {env_name}"] = error_at_end(run)
    published = controlled(effort, "noisy", ki=0.01, tau=0.95)
    numbers["error of the published gains and τ, off-policy"] = error_at_end(published)
    on, off = (
        ", ".join(f"{name} {numbers[f'error of {name}, {env}']:+.3f}" for name in ("none", *CONTROL))
        for env in (ON, OFF)
    )
    found = (
        "In the paper, P control suffices on-policy and only PI holds the target off-policy. Here P leaves an error in "
        f"both cases and PI removes it. Errors at the end, in nats: on-policy {on}; off-policy {off}. With the "
        f"published gains and τ = .95: {numbers['error of the published gains and τ, off-policy']:+.3f}."
    )
    return Measurement(stack(rows), numbers, found)


def entropy_panels(canvas: Figure, data: Measurement) -> list[Axes]:
    """Draw entropy over rollouts with the target in two panels, and return the panels."""
    panels = list(canvas.subplots(1, 2, sharey=True))
    for axes, (name, part) in zip(panels, data.series("panel").items(), strict=True):
        lines(axes, part, "rollout", "entropy")
        axes.axhline(TARGET, color="black", linewidth=0.8, linestyle=":")
        axes.set(xlabel="rollout", title=name)
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("entropy (nats)")
    return panels


def draw_thresholds(canvas: Figure, data: Measurement) -> None:
    entropy_panels(canvas, data)[0].legend()


@figure(
    "entropic-11",
    source="EntroPIC, figure 11",
    shows="PI control (dotted: its target) through all tokens, those above 0.5 and those above 0.95",
    changes_if="τ = 0.95 had the smallest error",
    draw=draw_thresholds,
)
def thresholds(effort: Effort) -> Measurement:
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    for env_name, env in ENVIRONMENTS.items():
        runs = {f"τ = {tau:g}": controlled(effort, env, tau=tau) for tau in THRESHOLDS}
        rows.append({"panel": env_name, **curves(runs)})
        for name, run in runs.items():
            numbers[f"error, {name}, {env_name}"] = error_at_end(run)
            numbers[f"spread, {name}, {env_name}"] = float(run.entropy_held.std(ddof=1))
    on, off = (
        ", ".join(f"{tau:g} {numbers[f'error, τ = {tau:g}, {env}']:+.3f}" for tau in THRESHOLDS) for env in (ON, OFF)
    )
    found = (
        "In the paper, acting only on tokens above .95 gives the steadiest control. Here these tokens are too few for "
        f"this target: errors by τ off-policy {off}; on-policy {on} nats. On-policy, τ = 0 has no effect at all, since "
        "weights by sign alone only rescale the expected step."
    )
    return Measurement(stack(rows), numbers, found)
