"""The study of a pretrained model: its design, written before its runs, and what its pilot runs say about its power.

    python benchmarks/pretrained.py           print the power, from the logs that are there

The runs and their table are those of `constraints` in studies.py; findings.py puts these paragraphs under it.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from studies import AVERAGE, BASELINE, BEST, DOCS, REWARD, SCORES, Results, Study, baseline_runs, cell, signed

from entrostat.logs.forecast import read as read_forecast
from entrostat.numbers.correlation import spearman
from llmtrain.studies.baseline import CONFIDENCE, Difference, differences
from llmtrain.studies.comparison import Run
from llmtrain.studies.standings import Standing
from toybandit.forecast.words import PLAIN

SMALLEST = 0.05
"""Smallest difference of pass@8 worth telling."""
POWER = 0.8
PILOT = 4
"""Upper limit for the seeds of GRPO from which the power is calculated."""
SENSE = DOCS / "data" / "sense.json"
FORECAST = DOCS / "data" / "forecast_constraints.json"
FEWEST = 4
"""Outcomes from which a forecast is judged."""
RATES = DOCS / "data" / "findings" / "constraints_rates"
"""Compact logs of GRPO under other learning rates: lr=<rate>/100.json.gz."""
AGAIN = DOCS / "data" / "findings" / "constraints_again"
"""Compact logs of runs of the study that were trained once more, on another processor: <rule>/<seed>.json.gz."""
TUNED = slice(40, 56)
"""Steps whose mean reward chose the learning rate."""
DESIGN = f"""**Design, written before the runs.**

- *Primary outcomes*: {BEST} on held-out questions after the last step, and its mean over the steps (the area under its
  curve by trapezoids, divided by the steps).
- *Secondary*: {AVERAGE}, training reward, n-gram diversity, KL from the start, and the sense of the answers.
- *Held-out questions*: half are about new topics under the constraints of training, half put new constraints.
- *Smallest difference worth telling*: {SMALLEST:g}.
- *A rule pays* if its interval of one primary outcome lies above 0 and its interval of the other not below.
- *Null result*: no interval of a primary outcome leaves out 0, and all lie within ±{2 * SMALLEST:g}. Control does not
  pay here then, and the README says so.
- *Changed after a first run of GRPO, before any other*: a sentence needs four different words. Without that limit the
  run ended in answers of one word: "Most" for a sentence that begins with Most.
- *Changed after two more, before any other rule*: words, sentences and lists are those that a person reads.
  "Rain-soaked" is one word, "Mars, Venus and Earth" are three planets, "Mars, Venus, Earth and Jupiter" four. 1.2% of
  419 logged answers are judged otherwise. These two runs are not in the table: all began anew.
- *Pilot*: GRPO's first four seeds, from which the power is calculated. They count in the table too: nothing but the
  number of seeds is chosen by them."""
CHOSEN = """- *Learning rate*: the same for all rules, the middle one of three tried for GRPO before these changes, on
  one seed (100) and questions (`task.seed 1`) of their own. One seed does not tell them apart: mean reward of steps
  {first} to {last} {rewards}."""


def power(deviation: float, seeds: int, comparisons: int, difference: float = SMALLEST) -> float:
    """Return the probability that a true difference is told apart.

    Student's t with the variance pooled over comparisons + 1 rules, divided by the comparisons as Bonferroni does.
    deviation: standard deviation between the seeds of a rule.
    """
    from scipy.stats import nct, t

    freedom = (comparisons + 1) * (seeds - 1)
    width = t.ppf(1 - (1 - CONFIDENCE) / 2 / comparisons, freedom)
    shift = difference / (deviation * sqrt(2 / seeds))
    return float(nct.sf(width, freedom, shift) + nct.cdf(-width, freedom, shift))


def seeds_for(deviation: float, comparisons: int) -> int:
    """Return the fewest seeds per rule with a power of POWER, at most 99."""
    return next((n for n in range(2, 99) if power(deviation, n, comparisons) >= POWER), 99)


def area(run: Run, metric: str) -> float:
    """Return the mean of a metric over the steps between its first and last evaluation, by trapezoids."""
    steps, values = run.series(metric)
    return float(np.trapezoid(values, steps) / (steps[-1] - steps[0]))


def outcomes(runs: Sequence[Run]) -> dict[str, NDArray[np.float64]]:
    """Return the primary outcomes of runs, (seeds,) each."""
    last, mean = [run.last(f"eval/{BEST}") for run in runs], [area(run, f"eval/{BEST}") for run in runs]
    return {f"{BEST} at the end": np.array(last), f"{BEST} over the steps": np.array(mean)}


def paragraphs(study: Study, found: Results | None = None) -> list[str]:
    """Return the design of a study, its power once two seeds of GRPO are there, and the forecast beside the results."""
    told, pilot = [f"{DESIGN}\n{rates()}"], baseline_runs(study)[:PILOT]
    if len(pilot) < 2:
        return told
    comparisons = len(study.rules) - 1
    lines = [
        f"| outcome | GRPO | deviation between seeds | power of {study.seeds} seeds | seeds for {POWER:g} |",
        "|---|---|---|---|---|",
    ]
    for name, values in outcomes(pilot).items():
        deviation = float(values.std(ddof=1))
        sees, needed = power(deviation, study.seeds, comparisons), seeds_for(deviation, comparisons)
        lines.append(f"| {name} | {values.mean():.3f} | {deviation:.3f} | {sees:.2f} | {needed} |")
    seeds = f"GRPO's seeds 0 to {len(pilot) - 1}"
    about = f"**Power** to see a difference of {SMALLEST:g}, with {comparisons} comparisons, from {seeds}:"
    return [*told, about, "\n".join(lines), *forecast(found)]


def sentence(found: Results) -> str:
    """Return the README's paragraph: whether control pays by the rule of the design, and the numbers behind it."""
    standings = [Standing(entry=one.entry, values=outcomes(found.runs[one.entry.name])) for one in found.standings]
    last, mean = (differences(standings, BASELINE, name) for name in standings[0].values)
    pays = [name for name in last if _rises(last[name], mean[name]) or _rises(mean[name], last[name])]
    ends = [end for each in (last, mean) for of in each.values() for end in of.interval]
    null = not pays and max(map(abs, ends)) <= 2 * SMALLEST
    final = {one.entry.name: one.mean(f"{BEST} at the end") for one in standings}
    plain = final.pop(BASELINE)
    of = f" of {found.study.seeds}" if found.seeds < found.study.seeds else ""
    seeds = f"[{found.seeds}{of} seeds](docs/findings.md#a-pretrained-model)"
    ends = f"SmolLM2-135M's held-out {BEST} is {plain:.3f} under GRPO"
    if not pays:
        known = (
            "**Control does not pay on a pretrained model**"
            if null
            else "It is not known if control pays on a pretrained model"
        )
        others = f"{min(final.values()):.3f} to {max(final.values()):.3f} under {len(final)} rules"
        return f"{known} ({seeds}): {ends} and {others}."
    first = max(pays, key=lambda name: last[name].mean)
    costs = {name: _costs(found, name) for name in pays}
    told = "; ".join([_plain(last[first]), *filter(None, [costs[first]])])
    price = ", at a price" if all(costs.values()) else ""
    known = f"It seems to pay on a pretrained model{price}" if of else f"**Control pays on a pretrained model{price}**"
    share = f"{len(pays)} of {len(final)} rules pay"
    return f"{known} ({seeds}): {ends}, {final[first]:.3f} under `{first}` ({told}); {share}."


def _costs(found: Results, name: str) -> str:
    """Return what a rule loses against GRPO, of training reward and avg@k, if their intervals lie below 0."""
    lost = {metric: found.against(metric)[name] for metric in (REWARD, AVERAGE)}
    return ", ".join(f"{metric} {_plain(one)}" for metric, one in lost.items() if one.interval[1] < 0)


def _plain(difference: Difference) -> str:
    """Return a difference with half its interval, without marks."""
    return signed(difference).replace("*", "")


def _rises(one: Difference, other: Difference) -> bool:
    """Return True if the interval of one outcome lies above 0 and that of the other not below."""
    return one.interval[0] > 0 and other.interval[1] >= 0


def forecast(found: Results | None) -> list[str]:
    """Return the forecast that was made before the other rules ran, beside the outcomes that there are."""
    if not FORECAST.exists():
        return []
    made = read_forecast(FORECAST)
    against = {metric: found.against(metric) | found.further_against(metric) if found else {} for metric in SCORES}
    lines = [f"| rule | {AVERAGE}, forecast | outcome | {BEST}, forecast | outcome |", "|---|---|---|---|---|"]
    pairs: dict[str, list[tuple[float, float]]] = {AVERAGE: [], BEST: []}
    for rule in made["rules"]:
        if rule["rule"] == PLAIN:
            continue
        cells = [f"`{rule['rule']}`"]
        for name, metric in (("reward", AVERAGE), ("pass", BEST)):
            gain = against[metric].get(rule["rule"])
            cells += [f"{rule[name][1]:+.3f} ±{rule[name][2]:.3f}", signed(gain) if gain else ""]
            pairs[metric] += [(rule[name][1], gain.mean)] if gain else []
        lines.append(f"| {' | '.join(cells)} |")
    about = f"""**Forecast**, made before any other rule ran, by `toybandit forecast` from GRPO's pilot runs
({made["steps"]} steps): differences from GRPO at the end, ± two standard errors over its environments."""
    notes, table = "\n".join(f"- {note}" for note in made["notes"]), "\n".join(lines)
    return [about, notes, table, *([was_right(pairs)] if len(pairs[BEST]) >= FEWEST else [])]


def was_right(pairs: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Return how many signs, and how much of the order, were as forecast, from (forecast, outcome) of the rules."""
    signs = {metric: [told * found > 0 for told, found in each] for metric, each in pairs.items()}
    right = " and ".join(f"{sum(of)} of {len(of)} in {metric}" for metric, of in signs.items())
    order = ", ".join(f"{spearman(*zip(*each, strict=True)):+.2f} in {metric}" for metric, each in pairs.items())
    return f"""The sign of the difference was as forecast in {right}. Chance would give half, but all
differences share GRPO's mean, so they tend to have one sign. The order of the rules does not depend on that mean: the
rank correlation of forecast and outcome is {order};
95% of random orders stay within ±{by_chance(len(pairs[BEST])):.2f}."""


def by_chance(count: int) -> float:
    """Return the limit that the rank correlation of 95% of random orders of so many rules stays within."""
    random, ranks = np.random.default_rng(0), np.arange(count)
    found = [spearman(ranks, random.permutation(ranks)) for _ in range(2000)]
    return float(np.quantile(np.abs(found), 0.95))


def rates() -> str:
    """Return how the learning rate was chosen."""
    said = {}
    for path in RATES.glob("lr=*/*.json.gz"):
        reward = np.array(json.loads(gzip.decompress(path.read_bytes()))["metrics"]["reward"][TUNED])
        error = reward.std(ddof=1) / len(reward) ** 0.5
        said[float(path.parent.name.removeprefix("lr="))] = f"{reward.mean():.3f} ± {error:.3f}"
    rewards = ", ".join(f"{said[rate]} under {rate:.0e}" for rate in sorted(said))
    return CHOSEN.format(first=TUNED.start, last=TUNED.stop - 1, rewards=rewards)


def further(found: Results) -> list[str]:
    """Return the table of what the main table has not: the area, and both halves of the held-out questions."""
    halves = {half: f"eval/{half}/{BEST}" for half in ("new topics", "new constraints")}
    measures = {f"{BEST} over the steps": lambda run: area(run, f"eval/{BEST}")}
    measures |= {half: lambda run, metric=metric: run.last(metric) for half, metric in halves.items()}
    measures["n-gram diversity"] = lambda run: run.last("eval/ngram_diversity")
    standings = [
        Standing(
            entry=one.entry,
            values={
                name: np.array([read(run) for run in found.runs[one.entry.name]]) for name, read in measures.items()
            },
        )
        for one in found.standings
    ]
    against: dict[str, dict[str, Difference]] = {name: differences(standings, BASELINE, name) for name in measures}
    lines = [f"| rule | {' | '.join(measures)} |", "|" + "---|" * (1 + len(measures))]
    for one in standings:
        cells = [f"`{one.entry.name}`"]
        for name in measures:
            difference = against[name].get(one.entry.name)
            cells.append(f"{one.mean(name):.3f}" + (f" ({signed(difference)})" if difference else ""))
        lines.append(f"| {' | '.join(cells)} |")
    return ["\n".join(lines), *few(found), *again(found), *sense(found)]


def few(found: Results) -> list[str]:
    """Return the table of the further rules, and the command that trains them."""
    planned = len(found.study.further)
    missing = planned - len(found.further)
    some = f"; {missing} of {planned} {'is' if missing == 1 else 'are'} not there yet" if missing else ""
    lines = [f"| further rule | seeds | entropy | {' | '.join(SCORES)} |", "|---|---|---|---|---|---|"]
    against = {metric: found.further_against(metric) for metric in SCORES}
    for one in sorted(found.further, key=lambda one: -one.mean(BEST)):
        cells = [f"`{one.entry.name}`", str(one.values[BEST].size), f"{one.mean('entropy'):.3f}"]
        cells += [cell(one.mean(metric), against[metric].get(one.entry.name)) for metric in SCORES]
        lines.append(f"| {' | '.join(cells)} |")
    about = f"""**Further rules** have one or two seeds{some}.
A difference is from all of GRPO's seeds, with the variance of all rules. These {planned} intervals hold together."""
    return [about, f"    {found.study.further_command}", *(["\n".join(lines)] if found.further else [])]


def again(found: Results) -> list[str]:
    """Return how far runs that were trained twice, on two processors, end from each other, beside other seeds."""
    ends = {name: np.array([run.last(f"eval/{BEST}") for run in runs]) for name, runs in found.runs.items()}
    gaps, processors = [], set()
    for name, runs in found.runs.items():
        for run, end in zip(runs, ends[name], strict=True):
            path = AGAIN / f"{run.config['out']}.json.gz"
            if path.exists():
                log = json.loads(gzip.decompress(path.read_bytes()))
                gaps.append(abs(end - [value for value in log["metrics"][f"eval/{BEST}"] if value is not None][-1]))
                processors.add(log["processor"])
    if not gaps:
        return []
    others = [abs(a - b) for values in ends.values() for a, b in combinations(values, 2)]
    told = f"""**The same seed twice.** {len(gaps)} of these runs were trained once more, on another processor
({", ".join(sorted(processors))}). Rounding differs there, so sooner or later other tokens are drawn. {BEST} at the end
differs by {np.mean(gaps):.3f} on average; between two seeds of a rule it differs by {np.mean(others):.3f}."""
    return [told]


def sense(found: Results) -> list[str]:
    """Return the table of what the rewarded answers say, from pretrained_sense.py."""
    stored = json.loads(SENSE.read_text()) if SENSE.exists() else {}
    rows = {name: stored.get(Path(runs[0].config["out"]).parent.name, {}) for name, runs in found.runs.items()}
    seeds = sorted({seed for measured in rows.values() for seed in measured})
    rows = {name: list(measured.values()) for name, measured in rows.items() if measured}
    if not rows:
        return []
    names = ("different answers", "different words", "names its topic", "published logp", "KL from the start")
    lines = [f"| rule | {' | '.join(names)} |", "|" + "---|" * (1 + len(names))]
    for name, measured in rows.items():
        cells = []
        for measure in names:
            values = np.array([one[measure] for one in measured])
            error = f" ± {values.std(ddof=1) / len(values) ** 0.5:.3f}" if len(values) > 1 else ""
            cells.append(f"{values.mean():.3f}{error}")
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    said = f"of seeds {', '.join(seeds)}, ± one standard error" if len(seeds) > 1 else f"of seed {seeds[0]} alone"
    about = f"""**Sense of the rewarded answers**, {said} (`benchmarks/pretrained_sense.py`): shares of different
answers, of different words within one, and of answers that name their topic; log-probability under the published model
and divergence from it in nats per token. Of a run that was trained twice, the second counts."""
    return [about, "\n".join(lines)]


def main() -> None:
    from studies import STUDIES

    for study in STUDIES:
        if study.name == "constraints":
            print("\n\n".join(paragraphs(study)))


if __name__ == "__main__":
    main()
