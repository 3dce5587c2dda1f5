"""Figures of an evaluation, one panel per benchmark.

pass_at_k.png        pass@k and maj@k against k
logp.png             mean log p per token, right and wrong responses      (Revisiting Entropy, figure 2)
prompt_entropy.png   accuracy of a question against its prompt's entropy  (Revisiting Entropy, figure 9)
difficulty.png       covariance by difficulty                             (Entropy Mechanism, figure 12)
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from entrostat.about.colours import PALETTE

from .records import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RIGHT, WRONG, THIRD = PALETTE[:3]
ACROSS = 3
"""Panels per row."""
FEW = 4
"""Maximum number of tick intervals, because labels of a narrow range have many digits."""


def draw(records: Sequence[Record], out: Path) -> list[Path]:
    """Write all figures into the folder `out`, and return their paths.

    Benchmarks with one sample per question have neither curves nor covariance.
    """
    grouped = [record for record in records if record.samples > 1]
    wanted = (
        ("pass_at_k.png", _curves, grouped),
        ("logp.png", _logp, records),
        ("prompt_entropy.png", _prompts, records),
        ("difficulty.png", _difficulty, grouped),
    )
    return [_figure(out / name, panel, some) for name, panel, some in wanted if some]


def _figure(path: Path, panel: Callable[["Axes", Record], None], records: Sequence[Record]) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(len(records), ACROSS)
    rows = -(-len(records) // columns)
    fig, axes = plt.subplots(rows, columns, figsize=(4.4 * columns, 3.5 * rows), layout="constrained", squeeze=False)
    for axis, record in zip(axes.flat, records, strict=False):
        panel(axis, record)
        axis.set_title(record.source)
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(records) :]:
        axis.remove()
    fig.savefig(path, dpi=130)
    plt.close(fig)
    return path


def _curves(axis: "Axes", record: Record) -> None:
    for label, colour, marker, at in (("pass@k", RIGHT, "o", record.pass_at), ("maj@k", WRONG, "s", record.maj_at)):
        ks = list(at)
        axis.plot(ks, [at[k].mean for k in ks], color=colour, marker=marker, label=label)
        axis.fill_between(ks, [at[k].low for k in ks], [at[k].high for k in ks], color=colour, alpha=0.15, linewidth=0)
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(record.pass_at), [str(k) for k in record.pass_at])
    axis.set(xlabel="k", ylabel="accuracy", ylim=(0, None))
    axis.legend(frameon=False)


def _logp(axis: "Axes", record: Record) -> None:
    found, middle = record.densities, record.calibration
    for label, colour, mean in (("right", RIGHT, middle.right), ("wrong", WRONG, middle.wrong)):
        if not np.isnan(mean):
            axis.stairs(found[label], found["edges"], color=colour, fill=True, alpha=0.35, label=label)
            axis.axvline(mean, color=colour, linestyle="--", linewidth=1)
    axis.set(xlabel="mean log p per token (nats)", ylabel="density")
    axis.locator_params(axis="x", nbins=FEW)
    axis.legend(frameon=False)


def _prompts(axis: "Axes", record: Record) -> None:
    axis.plot(record.prompt_entropy_of_question, record.accuracy_of_question, "o", color=RIGHT, alpha=0.5, markersize=4)
    rho = record.prompt_entropy_spearman
    said = "no ρ: nothing varies" if np.isnan(rho) else f"Spearman's ρ = {rho:+.2f}"
    axis.annotate(said, (0.03, 0.93), xycoords="axes fraction")
    axis.set(xlabel="prompt entropy (nats)", ylabel="accuracy", ylim=(-0.05, 1.12))
    axis.locator_params(axis="x", nbins=FEW)


def _difficulty(axis: "Axes", record: Record) -> None:
    groups = record.difficulty
    place = np.arange(len(groups))
    axis.bar(place, [group.covariance for group in groups], color=THIRD)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(place, [f"{g.low:g}–{g.high:g}\n{g.questions}" for g in groups])
    axis.set(xlabel="accuracy of the question, with number of questions", ylabel="Cov(log p, A)")
