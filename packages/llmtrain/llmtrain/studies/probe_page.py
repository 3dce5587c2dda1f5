"""Results of probes as a page like STEER's table 7, as JSON, and as a picture like its figure 12."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import RenderableType
from rich.table import Table

from entrostat.about.colours import PALETTE
from entrostat.about.end_labels import End, label_ends

from .first_order import OF_WEIGHTS
from .probe import (
    ALL,
    ESTIMATORS,
    LIKELY,
    NUMERALS,
    OWN,
    RAISES,
    UNLIKELY,
    Array,
    Probe,
    Quality,
    pool,
    quadrants,
    table,
)

DRAWN = ("exact flow", "STEER Ω", "−Cov", "all weights")
"""Estimators in the picture; the page has all."""
BINS = 15
TAIL = 0.01
"""Share of tokens at each end of the measured changes that the picture excludes."""
MILLI = 1000.0
CUTS = {
    "probability": f"p > {LIKELY} is likely, p ≤ {UNLIKELY} unlikely, tokens in between are excluded",
    "entropy": "p > e^(−H) is likely",
}


def by_optimizer(probes: Sequence[Probe]) -> dict[str, list[Probe]]:
    """Return the probes grouped by optimizer."""
    names = dict.fromkeys(one.optimizer for one in probes)
    return {name: [one for one in probes if one.optimizer == name] for name in names}


def to_json(probes: Sequence[Probe]) -> dict[str, Any]:
    """Return all results as JSON values, pooled over steps and for each step, without the tokens."""
    return {
        name: {"pooled": _numbers(pool(some)), "steps": {str(one.step): _numbers(one) for one in some}}
        for name, some in by_optimizer(probes).items()
    }


def _numbers(found: Probe) -> dict[str, Any]:
    return {
        "tokens": len(found.change),
        "updated": int(found.updated.sum()),
        "lr": found.lr,
        "step_length": found.length,
        "mean_change": float(found.change.mean()),
        "estimators": {
            where: {name: _finite(one) for name, one in each.items()} for where, each in table(found).items()
        },
        "quadrants": {cut: quadrants(found, cut) for cut in CUTS},
    }


def _finite(found: Quality) -> dict[str, float | None]:
    return {key: x if np.isfinite(x) else None for key, x in found._asdict().items()}


# The page -------------------------------------------------------------------------------------------------------------


WHOSE = {OWN: "of the token", ALL: "of all tokens together"}


def page(probes: Sequence[Probe], title: str) -> str:
    """Return the page in Markdown."""
    knowing = any(set(OF_WEIGHTS) & set(one.estimates) for one in probes)
    parts = [f"# Estimators of the entropy change: {title}", LEGEND, *([FIRST_ORDER] if knowing else [])]
    for name, some in by_optimizer(probes).items():
        steps = ", ".join(str(one.step) for one in some)
        found = pool(some)
        parts.append(f"## One step of {name}, rollout steps {steps}")
        parts.append(
            f"{len(found.change)} tokens, {int(found.updated.sum())} of them updated; mean learning rate "
            f"{found.lr:.3g}, mean step {found.length:.3g} in the weights; the entropy {WHOSE.get(name, 'of a token')} "
            f"changed by {MILLI * found.change.mean():+.2f} mnats on average, {MILLI * abs(found.change).mean():.2f} "
            f"in absolute value. Guessing zero for updated tokens has an MSE of "
            f"{(found.change[found.updated] ** 2).mean():.2e}."
        )
        parts += [told(found), _quality_table(found), _step_table(some)]
        parts += [_quadrant_table(found, cut) for cut in CUTS]
    return "\n\n".join(parts) + "\n"


LEGEND = (
    "The entropy of each token of a mini-batch was measured before and after one optimizer step. MSE is in nats², with "
    "the estimate at step size 1 (as in STEER's table 7), at the learning rate, and at the step size that fits best, "
    "there as a share of the mean squared change: 1 is no better than guessing zero. A best step size below 0 means "
    "that the estimate has the wrong direction. PCC and SRCC are Pearson's and Spearman's correlations, which do not "
    "depend on the step size."
)
FIRST_ORDER = (
    "The rows `output layer` and `all weights` include the effect of shared weights: they are the step's first-order "
    "effect through the output layer alone or through all weights, and η = 1 is the step itself."
)


def told(found: Probe) -> str:
    """Return a text that names the best estimator for the updated tokens, and compares Ω with Cov."""
    whole = table(found)["updated"]
    each = {name: whole[name] for name in ESTIMATORS}
    if not any(np.isfinite(one.spearman) for one in each.values()):
        return (
            "Estimators cannot be compared: all estimates, or all measured changes, are equal among the updated "
            "tokens, for example if no token has an advantage."
        )

    def best(key: str, sign: int) -> str:
        name = max(each, key=lambda name: np.nan_to_num(sign * getattr(each[name], key), nan=-np.inf))
        return f"{name} ({getattr(each[name], key):.3f})"

    omega, cov = each["STEER Ω"], each["−Cov"]
    better = {
        "a smaller error at step size 1": omega.mse < cov.mse,
        "a smaller error at its best step size": omega.mse_scaled < cov.mse_scaled,
        "a higher PCC": omega.pearson > cov.pearson,
        "a higher SRCC": omega.spearman > cov.spearman,
    }
    has = [text for text, true in better.items() if true]
    lacks = [text for text, true in better.items() if not true]
    return (
        f"For updated tokens {best('spearman', 1)} has the highest SRCC, {best('pearson', 1)} the highest PCC, "
        f"{best('wrong_sign', -1)} the fewest wrong signs, and {best('relative_mse_scaled', -1)} the smallest error at "
        f"the best step size, as a share of the error of guessing zero. The paper finds Ω better than Cov in every "
        f"column; here Ω has {', '.join(has) or 'no advantage'}"
        + (f"; it does not have {', '.join(lacks)}." if lacks else ".")
        + "".join(
            f" First order in {'all weights' if name == 'all weights' else 'the output layer alone'} has an SRCC of "
            f"{whole[name].spearman:.3f}, {whole[name].wrong_sign:.1%} wrong signs, and leaves "
            f"{whole[name].relative_mse_scaled:.3f} of that error."
            for name in OF_WEIGHTS
            if name in whole
        )
    )


def _quality_table(found: Probe) -> str:
    lines = _head("tokens", "method", "MSE, η = 1", "MSE, η = lr", "best η", "MSE at best η, share", "PCC", "SRCC")
    lines = [f"{lines[0]} wrong sign |", f"{lines[1]}---:|"]
    for where, each in table(found).items():
        if where == "all" and found.updated.all():
            continue
        for name, one in each.items():
            cells = (
                f"{one.mse:.2e}",
                "–" if name in OF_WEIGHTS else f"{one.mse_lr:.2e}",
                f"{one.scale:.2e}",
                f"{one.relative_mse_scaled:.3f}",
                f"{one.pearson:+.3f}",
                f"{one.spearman:+.3f}",
                f"{one.wrong_sign:.1%}",
            )
            lines.append(f"| {where} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _step_table(probes: Sequence[Probe]) -> str:
    lines = _head("SRCC of updated tokens at step", *(str(one.step) for one in probes))
    each = [table(one)["updated"] for one in probes]
    lines += [f"| {name} | {' | '.join(f'{one[name].spearman:+.3f}' for one in each)} |" for name in each[0]]
    return "\n".join(lines)


def _quadrant_table(found: Probe, cut: str) -> str:
    lines = _head("quadrant", "claim", "tokens", "as claimed", "measured (nats)", *found.estimates)
    for name, one in quadrants(found, cut).items():
        claim = "raises H" if RAISES[name] else "lowers H"
        sums = " | ".join(f"{x:+.3f}" for x in one["estimated"].values())
        shown = f"{one['tokens']} | {one['as_claimed']:.1%} | {one['measured']:+.3f} | {sums}"
        lines.append(f"| {NUMERALS[name]} {name} | {claim} | {shown} |")
    text = f"Entropy changes summed over the tokens of a quadrant ({CUTS[cut]}); estimates at their best step size."
    return "\n".join([text, "", *lines])


def _head(*names: str) -> list[str]:
    left = ("tokens", "method", "quadrant", "claim")
    rule = "".join("---|" if name in left or i == 0 else "---:|" for i, name in enumerate(names))
    return [f"| {' | '.join(names)} |", f"|{rule}"]


def summary(probes: Sequence[Probe]) -> list[RenderableType]:
    """Return tables for the terminal: estimators on the updated tokens, one table per optimizer, within 80 columns."""
    out: list[RenderableType] = []
    for optimizer, some in by_optimizer(probes).items():
        found = pool(some)
        shown = Table(title=f"one step of {optimizer}, updated tokens", box=SIMPLE, pad_edge=False)
        shown.add_column("method", no_wrap=True)
        for heading in ("MSE, η = 1", "best η", "MSE there, share", "PCC", "SRCC", "wrong sign"):
            shown.add_column(heading, justify="right")
        for name, one in table(found)["updated"].items():
            numbers = f"{one.mse:.2e}", f"{one.scale:.2e}", f"{one.relative_mse_scaled:.3f}", f"{one.pearson:+.3f}"
            shown.add_row(name, *numbers, f"{one.spearman:+.3f}", f"{one.wrong_sign:.1%}")
        out += [shown, told(found)]
    return out


# The picture ----------------------------------------------------------------------------------------------------------


def binned(estimate: Array, change: Array) -> dict[str, Array]:
    """Return the mean estimate in bins of the measured change: `change` (bin centre) and `estimate`, (bins,).

    Excludes a share TAIL of the tokens at each end, and empty bins.
    """
    low, high = np.quantile(change, [TAIL, 1 - TAIL])
    edges = np.linspace(low, high, BINS + 1)
    inside = (change >= low) & (change <= high)
    counts, _ = np.histogram(change[inside], edges)
    sums, _ = np.histogram(change[inside], edges, weights=estimate[inside])
    full = counts > 0
    return {
        "change": ((edges[:-1] + edges[1:]) / 2)[full],
        "estimate": sums[full] / counts[full],
    }


def figure(probes: Sequence[Probe], path: str | Path) -> None:
    """Draw estimates of updated tokens, at their best step size, against the measured change: a panel per optimizer.

    Names at the ends of the lines of DRAWN have Spearman's correlation.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    pooled = {name: pool(some) for name, some in by_optimizer(probes).items()}
    columns = min(2, len(pooled))
    rows = -(-len(pooled) // columns)
    fig, panels = plt.subplots(rows, columns, figsize=(4 * columns, 3.2 * rows), squeeze=False, layout="constrained")
    for axes, (optimizer, found) in zip(panels.flat, pooled.items(), strict=False):
        change, measured, ends = found.change[found.updated], table(found)["updated"], []
        for name, colour in zip(DRAWN, PALETTE, strict=False):
            if name not in measured:
                continue
            one = measured[name]
            bins = binned(MILLI * one.scale * found.estimates[name][found.updated], MILLI * change)
            axes.plot(bins["change"], bins["estimate"], "o-", color=colour, markersize=3)
            end = float(bins["change"][-1]), float(bins["estimate"][-1])
            ends.append(End(f"{name} {one.spearman:+.2f}", end, colour))
        span = [bins["change"][0], bins["change"][-1]]
        axes.plot(span, span, color="black", linewidth=0.8, linestyle=":")
        axes.set(title=f"one step of {optimizer}", xlabel="measured ΔH (mnats)", ylabel="mean estimate (mnats)")
        axes.grid(alpha=0.3)
        label_ends(axes, ends)
    for empty in panels.flat[len(pooled) :]:
        empty.remove()
    fig.savefig(path, dpi=150)
    plt.close(fig)
