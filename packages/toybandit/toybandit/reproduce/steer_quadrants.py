"""STEER, figures 2 and 14 to 16: the quadrants of advantage and probability, and the effect of reweighting one."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from entrostat.diagnostics import QUADRANTS

from ..instruments import weights
from ..trajectory import Array, Trajectory
from ..uncertainty import FACTOR, Measured, jackknife, mean
from .curves import curves, stack
from .drawing import lines
from .registry import Effort, Measurement, figure
from .steer_tokens import about, blocks, sample_tokens
from .touched import train_touched

NUMERALS = dict(zip(QUADRANTS, ("I", "II", "III", "IV"), strict=True))
P_EDGES = np.linspace(0, 1, 11)
A_EDGES = np.linspace(-3, 3, 13)
MILLI = 1000.0
SHARES = (0.05, 0.1, 0.2)
"""Shares of a quadrant's tokens that are reweighted in figures 15 and 16."""
UNTOUCHED = "untouched"


class Quadrant(NamedTuple):
    """Corner of the plane, cut as in the paper, and its effect on the entropy according to the paper."""

    sign: float
    p_low: float
    p_high: float
    raises: bool


CORNERS = {
    "exploitation": Quadrant(1, 0.8, 1.0, False),
    "exploration": Quadrant(1, 0.0, 0.2, True),
    "suppression": Quadrant(-1, 0.0, 0.2, False),
    "correction": Quadrant(-1, 0.8, 1.0, True),
}
"""Corners by name. The paper reweights tokens with a probability above 0.8 or below 0.2."""


def draw_plane(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    flow = data.table["flow"].astype(float).reshape(len(P_EDGES) - 1, len(A_EDGES) - 1)
    limit = np.nanquantile(np.abs(flow), 0.95)
    image = axes.pcolormesh(A_EDGES, P_EDGES, flow, cmap="PuOr", vmin=-limit, vmax=limit)
    axes.axvline(0, color="black", linewidth=1)
    for y in (0.2, 0.8):
        axes.axhline(y, color="black", linewidth=0.8, linestyle=":")
    for name, corner in CORNERS.items():
        rule = "raises H" if corner.raises else "lowers H"
        place = (corner.sign * 2.9, 0.97 if corner.p_low else 0.03)
        side, edge = ("right" if corner.sign > 0 else "left"), ("top" if corner.p_low else "bottom")
        paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 2}
        axes.text(*place, f"{NUMERALS[name]} {name}\n{rule}", ha=side, va=edge, fontsize=8, bbox=paper)
    axes.set(xlabel="advantage", ylabel="probability of the token")
    axes.grid(visible=False)
    canvas.colorbar(image, label="mean measured ΔH of a token (mnats)")


@figure(
    "steer-2",
    source="STEER, figure 2",
    shows="the measured entropy change of tokens in the advantage–probability plane",
    changes_if="a quadrant had its direction in no more than half of its tokens",
    draw=draw_plane,
)
def quadrant_plane(effort: Effort) -> Measurement:
    tokens = sample_tokens(effort, "mixed")
    bins = (tokens.advantage, tokens.p)
    total = np.histogram2d(*bins, bins=(A_EDGES, P_EDGES), weights=tokens.own)[0]
    count = np.histogram2d(*bins, bins=(A_EDGES, P_EDGES))[0]
    numbers = jackknife(as_claimed, *map(blocks, (tokens.advantage, tokens.p, tokens.entropy, tokens.own)))
    with np.errstate(invalid="ignore"):
        flow = MILLI * total / count
    a, p = np.meshgrid(A_EDGES[:-1], P_EDGES[:-1], indexing="ij")
    agreed = [numbers[f"{name}: as claimed"] for name in CORNERS]
    found = (
        "The paper gives each quadrant a direction. Here it is right for "
        f"{min(agreed):.1%} to {max(agreed):.2%} of a quadrant's tokens when cut at p = 0.2 and 0.8, and for "
        f"{numbers['all tokens, cut at e^(−H): as claimed']:.1%} of all tokens when cut at e^(−H)."
    )
    table = {"advantage": a.T, "p": p.T, "flow": flow.T, "tokens": count.T}
    return Measurement({name: values.flatten() for name, values in table.items()}, numbers, found, about(effort))


def as_claimed(advantage: Array, p: Array, entropy: Array, change: Array) -> dict[str, float]:
    """Return each corner's share of the tokens, and the share of its tokens that change the entropy as claimed."""
    numbers = {}
    for name, corner in CORNERS.items():
        inside = (advantage * corner.sign > 0) & (p > corner.p_low) & (p <= corner.p_high)
        numbers[f"{name}: share of tokens"] = float(inside.mean())
        numbers[f"{name}: as claimed"] = float(((change[inside] > 0) == corner.raises).mean())
    acting = change != 0
    claimed = ((advantage > 0) != (p > np.exp(-entropy)))[acting]
    return {**numbers, "all tokens, cut at e^(−H): as claimed": float((claimed == (change[acting] > 0)).mean())}


def touch(
    effort: Effort, upwards: bool, shares: Sequence[float], surrogate: str = "ppo", env: str = "noisy"
) -> dict[str, list[Trajectory]]:
    """Train to move the entropy up or down through each corner; return a trajectory for each share of its tokens."""
    regions = {
        f"{name}, {share:g}": weights(name, towards(corner.raises, upwards)) | {"share": share}
        for name, corner in CORNERS.items()
        for share in shares
    }
    runs = iter(train_touched(effort, regions, surrogate=surrogate, env=env).values())
    return {name: [next(runs) for _ in shares] for name in CORNERS}


def towards(raises: bool, upwards: bool) -> float:
    """Return the weight that moves entropy in the wanted direction: 2 if the quadrant already does, else 0 (masked)."""
    return 2.0 if raises == upwards else 0.0


def deed(name: str, upwards: bool) -> str:
    """Return "double" or "mask", the change to a quadrant's tokens."""
    return "double" if towards(CORNERS[name].raises, upwards) else "mask"


def draw_schemes(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    lines(axes, data, "rollout", "entropy")
    axes.set(xlabel="rollout", ylabel="entropy (nats)")
    axes.set_ylim(bottom=0)
    axes.legend()


@figure(
    "steer-14",
    source="STEER, figure 14",
    shows="four ways to raise the entropy by reweighting a tenth of one quadrant",
    changes_if="one of the four did not raise it in NOISY by two standard errors, or all did with 0/1 rewards",
    draw=draw_schemes,
)
def four_schemes(effort: Effort) -> Measurement:
    runs: dict[str, Trajectory] = {}
    numbers = {}
    for env in ("noisy", "on", "det"):
        for name, (before, after) in touch(effort, True, (0.0, 0.1), env=env).items():
            numbers[f"{name}: lift, {env}"] = mean(after.entropy_held - before.entropy_held)
            if env == "noisy":
                runs.setdefault("GRPO", before)
                runs[f"{deed(name, True)} 10% of {NUMERALS[name]}"] = after

    def lifts(env: str) -> str:
        return ", ".join(f"{NUMERALS[name]} {numbers[f'{name}: lift, {env}']:+.3f}" for name in CORNERS)

    found = (
        f"In the paper, all four raise the entropy. Here, change in nats over the last third: NOISY {lifts('noisy')}; "
        f"strictly on-policy {lifts('on')}; with 0/1 rewards, where right groups "
        f"soon have no advantage left, {lifts('det')}."
    )
    return Measurement(curves(runs), numbers, found)


def draw_panels(canvas: Figure, data: Measurement) -> None:
    panels = canvas.subplots(2, 2, sharex=True, sharey=True)
    for axes, (name, part) in zip(panels.flat, data.series("panel").items(), strict=True):
        lines(axes, part, "rollout", "entropy")
        axes.set_title(name)
        axes.set_ylim(bottom=0)
    for axes in panels[1]:
        axes.set_xlabel("rollout")
    canvas.supylabel("entropy (nats)", fontsize=9)
    handles, names = panels[0, 0].get_legend_handles_labels()
    canvas.legend(handles, names, loc="outside upper center", ncols=len(names))


def quadrant_panels(effort: Effort, upwards: bool, surrogate: str) -> tuple[Measurement, int]:
    """Measure each quadrant reweighted in three shares, and count those that work at the largest share.

    To work, the change of the entropy must have the sign wanted and exceed FACTOR of its standard errors.
    """
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, Measured] = {}
    for name, trajectories in touch(effort, upwards, (0.0, *SHARES), surrogate).items():
        runs = dict(zip((UNTOUCHED, *(f"{share:.0%}" for share in SHARES)), trajectories, strict=True))
        rows.append({"panel": f"{deed(name, upwards)} {NUMERALS[name]}, {name}", **curves(runs)})
        for share, trajectory in runs.items():
            if share != UNTOUCHED:
                numbers[f"{name}, {share}"] = mean(trajectory.entropy_held - runs[UNTOUCHED].entropy_held)
    sign = 1 if upwards else -1
    largest = [numbers[f"{name}, {SHARES[-1]:.0%}"] for name in CORNERS]
    worked = sum(sign * change > FACTOR * change.error for change in largest)
    return Measurement(stack(rows), numbers, ""), worked


def graded(numbers: Mapping[str, float]) -> int:
    """Return the number of quadrants in which a larger share has a larger effect."""
    effects = [[abs(numbers[f"{name}, {share:.0%}"]) for share in SHARES] for name in CORNERS]
    return sum(sorted(effect) == effect for effect in effects)


@figure(
    "steer-15",
    source="STEER, figure 15",
    shows="raising the entropy through each quadrant, by 5%, 10% and 20% of its tokens",
    changes_if="a quadrant's effect at 20% had the other sign or were within two standard errors of zero",
    draw=draw_panels,
)
def raising(effort: Effort) -> Measurement:
    data, worked = quadrant_panels(effort, True, "ppo")
    effects = ", ".join(f"{NUMERALS[name]} {data.numbers[f'{name}, 20%']:+.3f}" for name in CORNERS)
    found = (
        "In the paper, masking I and III and doubling II and IV raises the entropy, more with more tokens. Here "
        f"{worked} of 4 raise it (nats at 20%: {effects}), and in {graded(data.numbers)} of 4 more tokens have a "
        "larger effect."
    )
    return data._replace(found=found)


@figure(
    "steer-16",
    source="STEER, figure 16",
    shows="lowering the entropy through each quadrant, by 5%, 10% and 20% of its tokens",
    changes_if="a quadrant's effect at 20% had the other sign or were within two standard errors of zero",
    draw=draw_panels,
)
def lowering(effort: Effort) -> Measurement:
    data, worked = quadrant_panels(effort, False, "clip_higher")
    effects = ", ".join(f"{NUMERALS[name]} {data.numbers[f'{name}, 20%']:+.3f}" for name in CORNERS)
    found = (
        "In the paper, doubling I and III and masking II and IV lowers the entropy of Clip-Higher. Here "
        f"{worked} of 4 lower it (nats at 20%: {effects}), and in {graded(data.numbers)} of 4 more tokens have a "
        "larger effect."
    )
    return data._replace(found=found)
