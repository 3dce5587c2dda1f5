"""Comparison of runs from their logs: a table, and a figure of entropy, reward and pass@k against steps."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE
from rich.table import Table

from entrostat.about.colours import linestyle, styles
from entrostat.logs.foreign.foreign_runs import name_of, read_path
from entrostat.logs.runlog import HOLDS_WITHIN, moving_target, read_metrics, target_of
from entrostat.settings.commandline import writing

from ..evaluation.report import MISSING, number
from ..training.run import run_settings

SMOOTHING = 0.15
"""Weight of the newest value in the smoothed curves; raw curves are drawn faintly behind them."""
DROPPED = "/dropped"
"""End of the metrics of controllers that drop tokens, such as clip_cov/dropped."""
SAMPLED = re.compile(r"eval/(?:avg|pass)@(\d{1,6})")


def picture(path: str) -> Path:
    """Return the path of a figure; a name without a suffix gets .png, as in matplotlib."""
    return Path(path) if Path(path).suffix else Path(f"{Path(path)}.png")


@dataclass(frozen=True)
class Run:
    """Run log in memory."""

    name: str
    config: dict[str, Any]
    metrics: list[dict[str, Any]]
    imported: str = ""
    """Summary in one line of what was read from another trainer's log; empty for a run log."""

    @staticmethod
    def read(path: str | Path) -> "Run":
        """Return the run in the folder `path`. Raises ValueError if it contains no run log."""
        return Run(Path(path).name, run_settings(path), read_metrics(path))

    @staticmethod
    def read_all(path: str | Path) -> list["Run"]:
        """Return the run in a folder, or the runs in the log of another trainer.

        Raises ValueError in one line if there is neither.
        """
        if (Path(path) / "config.yaml").is_file():
            return [Run.read(path)]
        return [Run(run.name or name_of(path), {}, run.metrics, run.told()) for run in read_path(path)]

    def series(self, key: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the steps at which a metric was logged, and its values."""
        pairs = [(line["step"], line[key]) for line in self.metrics if line.get(key) is not None]
        steps, values = zip(*pairs, strict=True) if pairs else ((), ())
        return np.array(steps, dtype=np.int64), np.array(values, dtype=np.float64)

    def last(self, key: str) -> float:
        """Return the last value of a metric; NaN if it was never logged."""
        values = self.series(key)[1]
        return float(values[-1]) if len(values) else float("nan")

    @property
    def start(self) -> float:
        """Entropy (nats) of the held-out responses before the first step, which tells start models apart.

        NaN if unknown, and without a warm-up: the model is as it was published, and only its responses differ, which
        another processor rounds and therefore samples otherwise.
        """
        if self.config.get("sft", {}).get("steps") == 0 and self.config.get("model", {}).get("path"):
            return float("nan")
        steps, values = self.series("eval/entropy")
        return float(values[0]) if len(steps) and steps[0] == 0 else float("nan")

    def late(self, key: str) -> float:
        """Return the mean of a metric over the last third of its values; NaN if it was never logged."""
        values = self.series(key)[1]
        return float(values[-max(len(values) // 3, 1) :].mean()) if len(values) else float("nan")

    @property
    def dropped(self) -> float:
        """Share of the tokens that the run's controller dropped, mean over all steps; NaN if it drops none."""
        names = sorted({name for line in self.metrics for name in line if name.endswith(DROPPED)})
        return float(self.series(names[0])[1].mean()) if names else float("nan")

    @property
    def targets(self) -> dict[int, float]:
        """Target (nats) at each step if it moves; empty if it does not."""
        return moving_target(self.metrics)

    @property
    def target(self) -> float | None:
        """Target (nats), or the mean of one that moves over the last third of the steps; None without one."""
        late = list(self.targets.values())[-max(len(self.targets) // 3, 1) :]
        return float(np.mean(late)) if late else target_of(self.config)

    @property
    def k(self) -> int:
        """Number of samples per question; of another trainer's run, the largest that it has logged."""
        names = {name for line in self.metrics for name in line} if self.imported else set()
        logged = [int(found[1]) for name in names if (found := SAMPLED.fullmatch(name))]
        return max(logged, default=self.config.get("eval", {}).get("k", 8))

    def verdict(self) -> str:
        """Return the target with "held" or "missed" and the relative error, or "none" without a target."""
        if self.target is None:
            return "none"
        error = self.late("entropy") / self.target - 1
        if np.isnan(error):
            return f"{self.target:g} {MISSING}"
        shown = round(error, 2) + 0.0  # -0 is +0 now
        return f"{self.target:g} {'held' if abs(error) <= HOLDS_WITHIN else 'missed'} {shown:+.0%}"


def table(runs: Sequence[Run]) -> Table:
    """Return a table with one line per run, within 80 columns.

    Reward and entropy are means over the last third of the steps; avg@k and pass@k are from the last evaluation, with
    the first run's k. If a controller drops tokens, a column has their share of all tokens.
    """
    k, drops = runs[0].k, any(not np.isnan(run.dropped) for run in runs)
    caption = f"means over the last third of the steps; avg@{k} and pass@{k} on held-out problems at the end"
    out = Table(caption=caption, caption_justify="left", box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("run", "reward", f"avg@{k}", f"pass@{k}", "entropy", "target", "tokens/s", *["dropped"] * drops):
        out.add_column(heading, justify="left" if heading in ("run", "target") else "right", no_wrap=True)
    for run in runs:
        entropy = run.series("entropy")[1]
        out.add_row(
            run.name,
            number(run.late("reward")),
            number(run.last(f"eval/avg@{k}")),
            number(run.last(f"eval/pass@{k}")),
            f"{entropy[0]:.2f}→{run.late('entropy'):.2f}" if len(entropy) else MISSING,
            run.verdict(),
            number(run.late("tokens_per_second"), ",.0f"),
            *[number(run.dropped, ".2g")] * drops,
        )
    return out


def smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exponential moving average of the values."""
    out = values.copy()
    for i in range(1, len(out)):
        out[i] = (1 - SMOOTHING) * out[i - 1] + SMOOTHING * values[i]
    return out


def figure(runs: Sequence[Run], path: str | Path) -> None:
    """Draw entropy, reward and pass@k (the first run's k) with its 95% interval against steps, one line per run.

    A line has the colour of its run's controller. A panel names the runs without its metric. path: file to write, in
    any format of matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    k, looks = runs[0].k, styles([run.config.get("controller") or run.name for run in runs])
    panels = {"entropy": "entropy (nats)", "reward": "reward", f"eval/pass@{k}": f"pass@{k}, held-out"}
    fig, axes = plt.subplots(1, len(panels), figsize=(13, 4), layout="constrained")
    for axis, (key, label) in zip(axes, panels.items(), strict=True):
        missing = []
        for run, (colour, dash) in zip(runs, looks, strict=True):
            steps, values = run.series(key)
            if not len(values):
                missing.append(run.name)
            look: dict[str, Any] = {"color": colour, "linestyle": linestyle(dash), "label": run.name, "markersize": 3}
            if key.startswith("eval/"):
                axis.plot(steps, values, marker="o", **look)
                (at, low), (_, high) = (run.series(f"{key}/{end}") for end in ("low", "high"))
                axis.fill_between(at, low, high, color=colour, alpha=0.08, linewidth=0)
            else:
                axis.plot(steps, values, color=colour, alpha=0.25, linewidth=0.8)
                alone = "o" if len(values) == 1 else ""  # a line of one point is not drawn
                axis.plot(steps, smooth(values), marker=alone, **look)
        axis.set(xlabel="rollout step", ylabel=label)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        if missing:
            axis.set_title(f"{', '.join(missing)}: {MISSING}", loc="left", fontsize="small", color="grey", wrap=True)
    for moving in (run.targets for run in runs if run.targets):
        axes[0].plot([*moving], [*moving.values()], color="grey", linewidth=1, linestyle=(0, (1, 2)))
    for target in sorted({run.target for run in runs if run.target is not None and not run.targets}):
        axes[0].axhline(target, color="grey", linewidth=1, linestyle=(0, (1, 2)))
        beside = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "xytext": (-2, -3)}
        axes[0].annotate(f"target {target:g}", (1, target), ha="right", va="top", color="grey", **beside)
    axes[0].legend(frameon=False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with writing(path):
        fig.savefig(path, dpi=130)
    plt.close(fig)
