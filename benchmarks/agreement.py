"""Rank correlation between the bandit's leaderboard and the language model's; a section of docs/findings.md."""

import numpy as np
from page_tables import leading, read_table
from scipy.stats import spearmanr
from studies import DOCS

PREDICTED = {
    "entropy → entropy": ("entropy", "entropy"),
    "reward → reward": ("reward", "reward"),
    "reward → pass@8": ("reward", "pass@8"),
    "entropy → pass@8": ("entropy", "pass@8"),
}
"""Columns of the bandit's leaderboard, and of the language model's that they are to predict."""
RESAMPLES = 2000
AGREEMENT = f"""Spearman's rank correlation between the rows that [the bandit's leaderboard](leaderboard.md) (16
seeds) and [the language model's](leaderboard_lm.md) (160 steps, 3 seeds) share, controllers with the same values;
targets differ, 0.6 and 0.45 nats. Rows of [another start model](leaderboard_lm_2.md) count by their difference from
GRPO there. Brackets: 95% percentile bootstrap over rows, {RESAMPLES} resamples. Null: 0, the
order says nothing; **bold** leaves it out. Rows are not independent, since many controllers are relatives, so the
intervals are too narrow rather than too wide. An environment whose states share weights, fitted to GRPO's run alone,
[knows more](predict.md)."""


GRPO = ("ppo", "")


def language_model() -> dict[tuple[str, str], dict[str, float]]:
    """Return the numbers of the language model's two leaderboards, by controller and values, as if of one start model.

    Those of the second page are moved by the difference between the two pages' GRPO.
    """
    first, second = (
        {
            (row["controller"], row["values"]): {name: leading(row[name]) for name in ("entropy", "reward", "pass@8")}
            for row in read_table((DOCS / f"{page}.md").read_text(encoding="utf-8"), "All entries")[0]
            if "another start model" not in row["notes"]
        }
        for page in ("leaderboard_lm", "leaderboard_lm_2")
    )
    moved = {name: first[GRPO][name] - second[GRPO][name] for name in first[GRPO]}
    there = {key: {name: row[name] + moved[name] for name in row} for key, row in second.items()}
    return there | first


def agreement() -> list[str]:
    """Return the rank correlation of rows that the bandit's and the language model's leaderboards share."""
    bandits, model = (DOCS / "leaderboard.md").read_text(encoding="utf-8"), language_model()
    random = np.random.default_rng(0)
    lines = [f"| bandit | rows | {' | '.join(PREDICTED)} |", "|" + "---|" * (2 + len(PREDICTED))]
    for environment in ("noisy", "on", "det", "coupled"):
        bandit = {(r["controller"], r["values"]): r for r in read_table(bandits, environment)[0]}
        shared = [key for key in bandit if key in model]
        cells = []
        for here, there in PREDICTED.values():
            x = np.array([leading(bandit[key][here]) for key in shared])
            y = np.array([model[key][there] for key in shared])
            drawn = random.integers(len(shared), size=(RESAMPLES, len(shared)))
            low, high = np.nanpercentile([spearmanr(x[i], y[i]).statistic for i in drawn], [2.5, 97.5])
            mark = "**" if low * high > 0 else ""
            cells.append(f"{mark}{spearmanr(x, y).statistic:+.2f}{mark} [{low:+.2f}, {high:+.2f}]")
        lines.append(f"| `{environment}` | {len(shared)} | {' | '.join(cells)} |")
    return ["## Does the bandit predict the order of controllers?", AGREEMENT, "\n".join(lines)]
