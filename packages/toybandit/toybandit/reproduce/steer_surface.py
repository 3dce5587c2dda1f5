"""STEER, figures 1 and 4: entropy change as a function of a token's probability and its state's entropy."""

from math import log
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change, policy_stats
from entrostat.numbers.correlation import spearman
from entrostat.numbers.draws import normal, salt, uniform

from ..token_surface import exact_flow
from ..trajectory import Array
from ..uncertainty import band, jackknife
from .curves import stack
from .drawing import colour, line_style
from .registry import Effort, Measurement, figure
from .steer_tokens import about, blocks, sample_tokens

ARMS = 16
GRID = (97, 73)
"""Number of points in p and in H."""
COUNTS = (16, 1024)
"""Numbers of arms of the states of figure 4."""
BINS = 12


def surfaces(p: Tensor, entropy: Tensor, arms: int) -> tuple[Tensor, Tensor]:
    """Return the paper's δ(p, H), and the exact flow of a unit of weight, NaN if no distribution has that p and H.

    The arms not sampled share 1 − p geometrically, so that the state has the entropy H.
    """
    delta = entropy_change.own_logit(p.log(), entropy, torch.ones_like(p))
    return delta, exact_flow(p, entropy, arms)


def draw_surface(canvas: Figure, data: Measurement) -> None:
    p, entropy = np.unique(data.table["p"]), np.unique(data.table["entropy"])
    limit = np.nanmax(np.abs(data.table["delta"].astype(float)))
    left, right = canvas.subplots(1, 2, sharey=True)
    for axes, name, title in ((left, "delta", "δ of the paper"), (right, "exact", "exact, 16 arms")):
        values = data.table[name].astype(float).reshape(len(p), len(entropy)).T
        image = axes.pcolormesh(p, entropy, values, cmap="PuOr", vmin=-limit, vmax=limit, rasterized=True)
        axes.contour(p, entropy, values, levels=[0], colors="black", linewidths=1)
        axes.set(xlabel="probability of the token", title=title)
        axes.grid(visible=False)
    left.set_ylabel("entropy of its state (nats)")
    canvas.colorbar(image, ax=[left, right], label="ΔH for a unit of weight (nats)", aspect=30)


@figure(
    "steer-1",
    source="STEER, figure 1",
    shows="the surface δ(p, H), against the exact entropy change of the same token",
    changes_if="δ had the sign of the exact flow wherever p and H can occur",
    draw=draw_surface,
)
def delta_surface(effort: Effort) -> Measurement:
    p = torch.linspace(0.01, 0.99, GRID[0], dtype=torch.float64)
    entropy = torch.linspace(0.02, log(ARMS) - 0.02, GRID[1], dtype=torch.float64)
    grid_p, grid_h = torch.meshgrid(p, entropy, indexing="ij")
    delta, exact = surfaces(grid_p, grid_h, ARMS)
    possible = ~exact.isnan()
    wrong = possible & (delta * exact < 0)
    numbers = {
        "possible": float(possible.double().mean()),
        "wrong sign": float(wrong.sum() / possible.sum()),
        "largest delta": float(delta[possible].abs().max()),
        "largest exact": float(exact[possible].abs().max()),
        "pearson": float(torch.corrcoef(torch.stack([delta[possible], exact[possible]]))[0, 1]),
    }
    table = {"p": grid_p, "entropy": grid_h, "delta": delta, "exact": exact}
    found = (
        "The paper shows δ as negative above p = e^(−H) and positive below, for every p and H. Here the shape is the "
        f"same, but only {numbers['possible']:.0%} of the plane can occur with {ARMS} arms, and on "
        f"{numbers['wrong sign']:.0%} of that the sign is wrong: the true boundary is at a larger p."
    )
    columns = {name: values.flatten().numpy() for name, values in table.items()}
    return Measurement(columns, numbers, found, "Exact, without seeds")


def expected_size(effort: Effort, arms: int) -> dict[str, Array]:
    """Return H and the mean |ΔH| of a token o ~ p per unit of weight, for random states (states,) of every entropy."""
    states = effort.of(4000, 800)
    state = torch.arange(states).unsqueeze(-1)
    spread = 10 * uniform(salt("spread"), state)
    stats = policy_stats(spread * normal(salt("state"), state, torch.arange(arms)))
    h, s2, s2l = (x.unsqueeze(-1) for x in (stats.entropy, stats.s2, stats.s2l))
    one, p = torch.ones_like(stats.logp), stats.logp.exp()
    sizes = {
        "STEER's Ω": entropy_change.steer(stats.logp, h, one),
        "δ": entropy_change.own_logit(stats.logp, h, one),
        "exact": entropy_change.exact(stats.logp, h, s2, s2l, one),
    }
    found = {name: (p * flow.abs()).sum(-1).numpy() for name, flow in sizes.items()}
    return {"entropy": stats.entropy.numpy(), **found}


def by_entropy(sizes: dict[str, Array], arms: int) -> list[dict[str, Any]]:
    """Return the rows of the table: means in bins of equal width in H that have at least ten states."""
    entropy = sizes["entropy"]
    edges = np.linspace(0, log(arms), BINS + 1)
    bins = np.clip(np.digitize(entropy, edges) - 1, 0, BINS - 1)
    full = [b for b in range(BINS) if (bins == b).sum() >= 10]
    return [
        {
            "arms": f"{arms} arms",
            "series": name,
            "entropy": np.array([entropy[bins == b].mean() for b in full]),
            **stack([band("size", values[bins == b]) for b in full]),
        }
        for name, values in sizes.items()
        if name != "entropy"
    ]


def draw_by_entropy(canvas: Figure, data: Measurement) -> None:
    panels = canvas.subplots(1, 2)
    for axes, (name, part) in zip(panels, data.series("arms").items(), strict=True):
        sizes_by_entropy(axes, part, name)
    panels[0].set_ylabel("mean |ΔH| of a sampled token\nfor a unit of weight (nats)")
    panels[0].legend()


def sizes_by_entropy(axes: Axes, data: Measurement, title: str) -> None:
    for i, (name, part) in enumerate(data.series("series").items()):
        x, low, high = (part.table[column] for column in ("entropy", "size_low", "size_high"))
        axes.plot(x, part.table["size"], label=name, **line_style(i))
        axes.fill_between(x, low, high, color=colour(i), alpha=0.15, linewidth=0)
    axes.set(xlabel="entropy of the state (nats)", title=title)
    axes.set_ylim(bottom=0)


@figure(
    "steer-4a",
    source="STEER, figures 4a and 4b",
    shows="size of a token's entropy change, against the entropy of its state",
    changes_if="the correlation were within two standard errors of zero, or the exact size largest in the last bin",
    draw=draw_by_entropy,
)
def size_against_entropy(effort: Effort) -> Measurement:
    rows: list[dict[str, Any]] = []
    numbers: dict[str, float] = {}
    for arms in COUNTS:
        means = by_entropy(expected_size(effort, arms), arms)
        rows += means
        for row in means:
            numbers[f"{row['series']}: H of the largest change, {arms} arms"] = row["entropy"][row["size"].argmax()]
    tokens = sample_tokens(effort, "mixed")
    key = "spearman of H and measured |ΔH|"
    pair = map(blocks, (tokens.entropy, np.abs(tokens.own)))
    numbers |= jackknife(lambda entropy, size: {key: spearman(entropy, size)}, *pair)
    few, many = (numbers[f"exact: H of the largest change, {arms} arms"] for arms in COUNTS)
    found = (
        "The paper infers from δ, and sees in training, that tokens of high entropy change the entropy more. Tokens of "
        f"GRPO in the bandit agree: Spearman {numbers[key]:.2f} between H and the measured |ΔH|. But the trend ends "
        f"before the largest H: the exact size is largest at {few:.1f} of {log(COUNTS[0]):.1f} nats with {COUNTS[0]} "
        f"arms and at {many:.1f} of {log(COUNTS[1]):.1f} with {COUNTS[1]}, and vanishes for uniform states; Ω, which "
        f"lacks a factor p, grows further (means in {BINS} bins of H)."
    )
    return Measurement(stack(rows), numbers, found, about(effort))
