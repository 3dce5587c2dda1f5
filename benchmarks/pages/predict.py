"""Writes what came out into docs/predict.md, with its picture: python -m benchmarks.pages.predict

Judges the forecasts of benchmarks/predict.py by the runs of the language model's leaderboard, and writes what past
forecasts were worth to packages/toybandit/toybandit/forecast/record.json.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from entrostat.about.colours import PALETTE
from entrostat.about.end_labels import End, label_ends
from entrostat.about.lineup import entries
from entrostat.about.titled_points import Titled, markdown, save
from entrostat.registry import REGISTRY
from toybandit.forecast import words
from toybandit.forecast.observed import SCALE
from toybandit.trajectory import Array

from ..page_tables import leading, read_table
from ..predict import DOCS, LOGS, OTHERS, PLACE, WITHOUT, metrics_of, names, observed, read_fits

PAGE, PICTURE = DOCS / "predict.md", DOCS / "predict" / "outcomes.png"
RECORD = Path(words.__file__).with_name("record.json")
FIRST, FINDINGS = PLACE / "first_60.json", DOCS / "data" / "findings" / "countdown"
HEADING = "## What came out\n"
RESAMPLES = 2000
BAR = 0.4
LATER = ("aem", "clip_b", "clip_v", "dro", "epo", "ipo", "luspo", "quadrant_mask", "temperature_loop")
"""Controllers that the language model's leaderboard did not have when the protocol was written."""
LATER_ENTRY = "thermostat (mode=temperature)"
OLD = ("noisy", "on", "det", "coupled")
MEASURES = ("reward", "pass@8")
SETTINGS = ("features", "coupling", "predictable", "length", "branching", "arms", "right_arms", "skill", "lr")
COLOURS = {"looked at": "#999999", "held aside": PALETTE[0], "new": PALETTE[1]}
NAMED = ("ppo", "thermostat", "entrocraft", "opefo", "repo_r (zeta_max=1.0)")
"""Entries with a label in the picture."""


class Correlation(NamedTuple):
    """Rank correlation with its interval over families."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


@cache
def outcomes() -> dict[str, Array]:
    """Return avg@8 and pass@8 of each entry's runs of the language model at the end, (2, seeds).

    Runs from another start model are moved by the difference between the two starts' GRPO.
    """
    moved = at_the_end("ppo", LOGS).mean(1, keepdims=True) - at_the_end("ppo", OTHERS).mean(1, keepdims=True)
    found = {}
    for entry in entries():
        folder = re.sub(r"[^\w.=-]+", "_", entry.name).strip("_")
        if entry.name != "ppo" and (OTHERS / folder).is_dir():
            found[entry.name] = at_the_end(folder, OTHERS) + moved
        elif (LOGS / folder).is_dir():
            found[entry.name] = at_the_end(folder, LOGS)
    return found


def at_the_end(folder: str, logs: Path) -> Array:
    """Return avg@8 and pass@8 of an entry's runs at the end, (2, seeds)."""
    return np.array([outcome(metrics_of(folder, seed, logs)) for seed in range(3)]).T


def outcome(metrics: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the last avg@8 and pass@8 on held-out problems."""
    found = ([line[name] for line in metrics if line.get(name) is not None] for name in ("eval/avg@8", "eval/pass@8"))
    return [values[-1] for values in found]


def sets() -> dict[str, list[str]]:
    """Return the entries that may be looked at, those held aside, and those trained after the forecast."""
    new = [name for name in outcomes() if name.split(" ")[0] in LATER or name == LATER_ENTRY]
    shown = [name for name in outcomes() if name not in new]
    controllers = sorted({name.split(" ")[0] for name in shown})
    apart = set(np.random.default_rng(0).choice(controllers, len(controllers) // 3, replace=False))
    held = [name for name in shown if name.split(" ")[0] in apart]
    return {"looked at": [name for name in shown if name not in held], "held aside": held, "new": new}


def groups_of(chosen: Sequence[str]) -> list[list[int]]:
    """Return the entries' numbers by family: entries whose controllers one module defines."""
    members: dict[str, list[int]] = {}
    for i, name in enumerate(chosen):
        members.setdefault(REGISTRY[name.split(" ")[0]].__module__, []).append(i)
    return list(members.values())


def resampled(chosen: Sequence[str], statistic: Callable[[Array], Array]) -> Correlation:
    """Return a statistic with a 95% percentile bootstrap over families.

    statistic: of entries that count `times`, (draws, entries); (draws,).
    """
    groups, random = groups_of(chosen), np.random.default_rng(0)
    member = np.array([[i in group for i in range(len(chosen))] for group in groups], dtype=float)
    drawn = np.array([random.integers(len(groups), size=len(groups)) for _ in range(RESAMPLES)])
    often = (drawn[:, :, None] == np.arange(len(groups))).sum(1)
    low, high = np.nanpercentile(statistic(often @ member), [2.5, 97.5])
    return Correlation(float(statistic(np.ones((1, len(chosen))))[0]), float(low), float(high))


def ranks(x: Array, y: Array, times: Array) -> Array:
    """Return Spearman's correlation of entries that count `times` (draws, n), (draws,); NaN if one is constant."""
    both = [times @ ((of[:, None] < of) + (of[:, None] == of) / 2) for of in (x, y)]
    a, b = (of - np.average(of, axis=1, weights=times)[:, None] for of in both)
    size = (times * a * a).sum(1) * (times * b * b).sum(1)
    return np.where(size > 0, (times * a * b).sum(1) / np.sqrt(np.where(size > 0, size, 1)), np.nan)


def rank(x: Array, y: Array) -> float:
    """Return Spearman's correlation; NaN if one of the two is constant."""
    return float(ranks(x, y, np.ones((1, len(x))))[0])


def ceiling(runs: Array) -> float:
    """Return the correlation to expect between these means and those of as many other seeds, from runs (n, seeds)."""
    noise = runs.var(1, ddof=1).mean() / runs.shape[1]
    return float(1 - noise / runs.mean(1).var(ddof=1))


def made(without: str = "") -> dict[str, Any]:
    """Return the forecasts, (fits, seeds) of each number, without a part of the environment."""
    found: dict[str, Any] = json.loads(names(without)[1].read_text())
    return found


def predictors(chosen: Sequence[str], forecasts: Mapping[str, Any]) -> dict[str, tuple[Array, Array]]:
    """Return what predicts reward and pass@8 of these entries: the forecast, and the nulls, upwards."""

    def mean(name: str) -> Array:
        return np.array([np.mean(forecasts[n][name]) for n in chosen])

    entropy = mean("entropy")
    found = {"**forecast**": (mean("reward"), mean("passed")), "entropy reached in `features`": (entropy, entropy)}
    text = (DOCS / "leaderboard.md").read_text(encoding="utf-8")
    for environment in OLD:
        rows = {named(row): row for row in read_table(text, environment)[0]}
        for column in ("reward", "entropy"):
            x = np.array([leading(rows[n][column]) if n in rows else np.nan for n in chosen])
            found[f"{column} in `{environment}`"] = (x, x)
    return found


def named(row: Mapping[str, Any]) -> str:
    """Return the name of a row's entry."""
    return f"{row['controller']} ({row['values']})" if row["values"] else str(row["controller"])


class Judged(NamedTuple):
    """Correlations of a set of entries, by predictor and measure."""

    chosen: list[str]
    found: dict[str, dict[str, Correlation]]
    best: dict[str, str]
    """Best null of each measure."""
    gain: dict[str, Correlation]
    """Correlation of the forecast minus that of the best null."""


def judge(chosen: list[str], signs: Mapping[str, Mapping[str, float]] | None) -> Judged:
    """Return the correlations of a set. signs: direction of each null, chosen on another set; None: on this one."""
    y = {m: np.array([outcomes()[n][i].mean() for n in chosen]) for i, m in enumerate(MEASURES)}
    x = {name: dict(zip(MEASURES, pair, strict=True)) for name, pair in predictors(chosen, made()).items()}
    for name, of in x.items():
        if name != FORECAST:
            of |= {m: of[m] * (np.sign(rank(of[m], y[m])) if signs is None else signs[name][m]) for m in MEASURES}
    found = {name: {m: resampled(chosen, partial(ranks, of[m], y[m])) for m in MEASURES} for name, of in x.items()}
    best = {m: max((n for n in x if n != FORECAST), key=lambda n: found[n][m].value) for m in MEASURES}
    gain = {
        m: resampled(
            chosen,
            lambda times, u=x[FORECAST][m], v=x[best[m]][m], z=y[m]: ranks(u, z, times) - ranks(v, z, times),
        )
        for m in MEASURES
    }
    return Judged(chosen, found, best, gain)


FORECAST = "**forecast**"


def directions(chosen: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return for each predictor and measure the sign of its correlation over these entries."""
    y = {m: np.array([outcomes()[n][i].mean() for n in chosen]) for i, m in enumerate(MEASURES)}
    x = {name: dict(zip(MEASURES, pair, strict=True)) for name, pair in predictors(chosen, made()).items()}
    return {name: {m: float(np.sign(rank(of[m], y[m]))) for m in MEASURES} for name, of in x.items()}


def signs_right(chosen: Sequence[str]) -> tuple[int, int]:
    """Return how many entries' pass@8 is told apart from GRPO's by the forecast, and of how many the sign is right."""
    forecasts, told, right = made(), 0, 0
    plain = np.array(forecasts["ppo"]["passed"])
    for name in chosen:
        value, error = words.difference(np.array(forecasts[name]["passed"]), plain)
        if name != "ppo" and abs(value) > words.FACTOR * error:
            told += 1
            right += bool(value * (outcomes()[name][1].mean() - outcomes()["ppo"][1].mean()) > 0)
    return told, right


def fits_table(chosen: Sequence[str]) -> list[str]:
    """Return lines with the fitted environments, and what each alone says of these entries."""
    known = int(np.isfinite(observed().numbers).sum())
    heads = ["off by", *(f"`{name}`" for name in SETTINGS), "reward", "pass@8"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for i, one in enumerate(read_fits()):
        alone = {n: {k: v[i : i + 1] for k, v in made()[n].items()} for n in chosen}
        pair = predictors(chosen, alone)[FORECAST]
        found = [rank(x, np.array([outcomes()[n][j].mean() for n in chosen])) for j, x in enumerate(pair)]
        cells = [f"{(one.distance / known) ** 0.5 * SCALE:.3f}"]
        cells += [*(number(getattr(one.config, name)) for name in SETTINGS), *(f"{x:+.2f}" for x in found)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def number(value: Any) -> str:
    """Return a setting as text."""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def correlations_table(all_sets: Mapping[str, Judged], measure: str) -> list[str]:
    """Return lines with the correlation of each predictor with a measure, by set."""
    heads = [f"{name} ({len(of.chosen)})" for name, of in all_sets.items()]
    signs = directions(all_sets["looked at"].chosen)
    lines = [f"| order by | {' | '.join(heads)} |", "|" + "---|" * (len(heads) + 1)]
    for name in all_sets["looked at"].found:
        way = "" if name == FORECAST else (", upwards" if signs[name][measure] > 0 else ", downwards")
        lines.append(f"| {name}{way} | {' | '.join(str(of.found[name][measure]) for of in all_sets.values())} |")
    gains = [f"{of.gain[measure]}" for of in all_sets.values()]
    return [*lines, f"| forecast minus the best null | {' | '.join(gains)} |"]


def ablations_table(chosen: Sequence[str]) -> list[str]:
    """Return lines with the correlations over all these entries, whole and without each part."""
    lines = ["| environment | off by | reward | pass@8 |", "|---|---|---|---|"]
    known = int(np.isfinite(observed().numbers).sum())
    y = [np.array([outcomes()[n][i].mean() for n in chosen]) for i in range(2)]
    for without in ("", *WITHOUT):
        forecasts = made(without) if names(without)[1].exists() else {}
        if not set(chosen) <= set(forecasts):
            continue
        first = {n: {k: v[:1] for k, v in forecasts[n].items()} for n in chosen}
        pair, found = predictors(chosen, first)[FORECAST], []
        for x, outcome_of in zip(pair, y, strict=True):
            found.append(str(resampled(chosen, partial(ranks, x, outcome_of))))
        off = (read_fits(without)[0].distance / known) ** 0.5 * SCALE
        title = f"without {without}" if without else "whole"
        lines.append(f"| {title} | {off:.3f} | {' | '.join(found)} |")
    return lines


def first_steps() -> list[str]:
    """Return lines on the forecast from GRPO's first 60 steps, against the runs of docs/findings.md."""
    forecast = json.loads(FIRST.read_text())
    folders = {re.sub(r"[^\w.=-]+", "_", rule["rule"]).strip("_"): rule for rule in forecast["rules"]}
    folders = {name.replace("auto=True_target=0.26", "auto=True"): rule for name, rule in folders.items()}
    ended = {
        name: np.mean([outcome(metrics_of(name, seed, FINDINGS)) for seed in range(3)], 0)
        for name in folders
        if (FINDINGS / name).is_dir()
    }
    lines = ["| rule | reward, forecast | outcome | pass@8, forecast | outcome |", "|---|---|---|---|---|"]
    rows = []
    for name in sorted(ended, key=lambda name: -folders[name]["pass"][1]):
        if name == "ppo":
            continue
        rule, against = folders[name], ended[name] - ended["ppo"]
        rows.append((rule["reward"][1], against[0], rule["pass"][1], against[1]))
        cells = [
            f"{rule[k][1]:+.3f} ±{rule[k][2]:.3f} | {x:+.3f}" for k, x in zip(("reward", "pass"), against, strict=True)
        ]
        lines.append(f"| `{rule['rule']}` | {' | '.join(cells)} |")
    values = np.array(rows).T
    found = f"{rank(values[0], values[1]):+.2f} for reward and {rank(values[2], values[3]):+.2f} for pass@8"
    return [*lines, "", f"Rank correlation over these {len(rows)} rules: {found}."]


def draw(all_sets: Mapping[str, list[str]]) -> None:
    """Draw forecast against outcome of every entry, by set."""
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    axes = figure.subplots(1, 2)
    forecasts, points = made(), []
    for panel, (i, measure) in zip(axes, enumerate(MEASURES), strict=True):
        ends = []
        for title, chosen in all_sets.items():
            x = [float(np.mean(forecasts[n]["passed" if i else "reward"])) for n in chosen]
            y = [float(outcomes()[n][i].mean()) for n in chosen]
            panel.plot(x, y, "o", ms=5, alpha=0.75, color=COLOURS[title], label=f"{title}: {len(chosen)}")
            for name, at in zip(chosen, zip(x, y, strict=True), strict=True):
                points.append(Titled(panel, at, f"{name} (forecast {at[0]:.3f}, outcome {at[1]:.3f})"))
                if name in NAMED:
                    ends.append(End("GRPO" if name == "ppo" else name, at, "#444444"))
        panel.set(xlabel=f"forecast of held-out {measure}", ylabel=f"{measure} of the language model")
        panel.grid(alpha=0.3)
        label_ends(panel, ends, leaders=True)
    axes[0].legend(frameon=False, loc="upper left")
    save(figure, PICTURE, points)


def verdict(held: Judged) -> list[str]:
    """Return lines with the bars, from the numbers."""
    lines = [
        "| on the third held aside | forecast | at least .4 | best null | above its interval |",
        "|---|---|---|---|---|",
    ]
    for measure in MEASURES:
        value, null = held.found[FORECAST][measure], held.found[held.best[measure]][measure]
        met, above = ("reached" if x else "**missed**" for x in (value.value >= BAR, value.value > null.high))
        lines.append(f"| {measure} | {value} | {met} | {held.best[measure]}, {null} | {above} |")
    return lines


def outside(chosen: Sequence[str]) -> str:
    """Return the parts without which a correlation leaves the range of the four environments, two sentences."""
    y = [np.array([outcomes()[n][j].mean() for n in chosen]) for j in range(2)]

    def alone(without: str, i: int) -> list[float]:
        forecasts = {n: {k: v[i : i + 1] for k, v in made(without)[n].items()} for n in chosen}
        return [rank(x, of) for x, of in zip(predictors(chosen, forecasts)[FORECAST], y, strict=True)]

    whole = np.array([alone("", i) for i in range(len(read_fits()))])
    said = []
    for j, measure in enumerate(MEASURES):
        found = {part: alone(part, 0)[j] for part in WITHOUT if names(part)[1].exists()}
        least = {part: value for part, value in found.items() if value < whole[:, j].min()}
        told = ", ".join(f"without {part} ({value:+.2f})" for part, value in least.items()) or "none"
        said.append(f"{measure} ({whole[:, j].min():+.2f} to {whole[:, j].max():+.2f}): {told}")
    return f"Worse than each of the four, for {said[0]}.\n\nWorse than each of the four, for {said[1]}."


def written() -> str:
    """Return the part of the page that is made of numbers."""
    chosen = sets()
    signs = directions(chosen["looked at"])
    everything = {"all": [name for of in chosen.values() for name in of]}
    judged = {name: judge(of, signs) for name, of in {**chosen, **everything}.items() if of}
    shown = [*chosen["looked at"], *chosen["held aside"]]
    most = {m: ceiling(np.array([outcomes()[n][i] for n in shown])) for i, m in enumerate(MEASURES)}
    told, right = signs_right(chosen["held aside"])
    held = judged["held aside"]
    record = {
        "entries": len(held.chosen),
        **{m: str(held.found[FORECAST][m]) for m in MEASURES},
        "told": told,
        "right": right,
    }
    RECORD.write_text(json.dumps(record, indent=2) + "\n")
    new_told, new_right = signs_right(chosen["new"])
    parts = [
        HEADING,
        "\n".join(verdict(held)),
        TEXT["answer"],
        markdown("Forecast against outcome", "predict/outcomes.png"),
        TEXT["environments"].format(entries=len(shown)),
        "\n".join(fits_table(shown)),
        TEXT["fits"],
        "### Held-out reward",
        "\n".join(correlations_table(judged, "reward")),
        "### Held-out pass@8",
        "\n".join(correlations_table(judged, "pass@8")),
        TEXT["tables"].format(reward=most["reward"], passed=most["pass@8"]),
        "If the forecast tells an entry's pass@8 apart from GRPO's (two standard errors), its sign is right in "
        f"{right} of {told} entries held aside"
        + (f", and in {new_right} of {new_told} new ones." if new_told else "."),
        "### From the first 60 of 480 steps",
        TEXT["first"],
        "\n".join(first_steps()),
        "### Which part matters",
        TEXT["parts"].format(entries=len(shown)),
        "\n".join(ablations_table(shown)),
        outside(shown),
        TEXT["limits"],
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


TEXT = {
    "answer": """
From plain GRPO's runs alone the environment knows much of the order of the other rules, in reward and in pass@8. It
does not beat the best of nine nulls on the same entries, each of which may take the direction that suits it. One of
them, the order by the entropy that a rule reaches in a table, does about as well there, and worse on the entries looked
at.""",
    "environments": """
The table has the four environments that do what GRPO's runs did. "Off by" is the root mean square of the differences
over 16 numbers. The last two columns are the rank correlation of each alone, over the {entries} entries looked at or
held aside:""",
    "fits": """
All four share nearly everything, and their right answers hardly follow from the features. What is learnt on one prompt
moves all others, mostly without teaching them anything. Entropy can therefore fall by two thirds, and pass@8 with it,
while the reward rises by half. A single environment may miss one of the two orders; their mean has both.""",
    "tables": """
- Brackets are 95% bootstrap intervals over families.
- A null has the direction that is right for the entries looked at, after which nothing was changed.
- "New" are rules whose runs were made after the forecast was committed.
- The ceiling: the language model's own means of three seeds can be expected to correlate with those of three others by
  {reward:.2f} for reward and {passed:.2f} for pass@8.""",
    "first": """
Here the forecast reads the first 60 of GRPO's 480 steps in the longer runs of [the findings](findings.md), and the
outcome is at their end. The table has differences from GRPO on held-out problems, three seeds; ± is the forecast's:""",
    "parts": """
Each part is removed by itself and the rest fitted anew, with one search and one environment each; "whole" is the first
of the four. The entries are the {entries} looked at or held aside. The four differ much among themselves, so a part
matters only if the number without it is outside their range:""",
    "limits": """
## Limits

- One model of 0.86M parameters, one task, one learning rate. A forecast for a pretrained model was committed before
  its runs, with the warning that no environment does what GRPO did there. Its order [cannot be told from
  chance](findings.md#a-pretrained-model); most rules there have one seed or two.
- The four environments differ in what they say of a rule. The intervals that `toybandit forecast` prints cover these
  differences, but nothing that all four lack.
- Rules that differ in how they clip are alike here, since a second mini-batch hardly moves the ratios. In the language
  model they differ by less than three seeds can tell.
- Rules for whole responses and positions act on responses of six tokens.""",
}


def main() -> None:
    text = PAGE.read_text(encoding="utf-8").partition(HEADING)[0]
    draw(sets())
    PAGE.write_text(text.rstrip("\n") + "\n\n" + written(), encoding="utf-8")


if __name__ == "__main__":
    main()
