"""A loop on the sampling temperature beside held entropy, and GRPO asked at a higher temperature; a section of
docs/findings.md.

Null result, written before the runs: at temperature 1 neither loop is told apart from GRPO in held-out pass@8, and no
rule gains pass@8 from a higher temperature of evaluation.
"""

import json
from dataclasses import replace

import numpy as np
from studies import BASELINE, BEST, DOCS, REWARD, STUDIES, Study, cell, results, signed

from llmtrain.studies.baseline import ALIKE, differences
from llmtrain.studies.standings import Standing

NAME = "countdown_temperature"
HELD = "thermostat (mode=bonus, target=0.26)"
RULES = (
    BASELINE,
    "thermostat mode=bonus target=0.26",
    "thermostat mode=temperature target=0.26",
    "temperature_loop target=0.26",
)
ASKED = DOCS / f"data/findings/{NAME}/asked.json"
"""Evaluations of the last checkpoints: pass@8, avg@8 and entropy by run and temperature."""
TEXT = """The training of [problems that repeat](#problems-that-repeat), with loops that hold the entropy of the
samples by their temperature T: [`thermostat` with mode=temperature](thermostat.md#temperature), which solves for T, and
E3's [`temperature_loop`](controllers.md#temperature_loop). Each last checkpoint was then asked the held-out problems at
four temperatures, `llmtrain eval RUN --temperature T --samples 8`. Reward and the entropy of the samples are means over
the last third of the steps; T and the entropy at 1 are of the last step. Differences are from GRPO asked at the same
temperature; all intervals of a column hold together with 95%."""


def study() -> Study:
    repeat = next(one for one in STUDIES if one.name == "countdown")
    flags = repeat.flags.replace("--save-every 160", "--save-every 480") + " --advantage grpo"
    return replace(repeat, name=NAME, flags=flags, rules=RULES)


def heated() -> list[str]:
    """Return the section, empty before the study is finished."""
    found = results(study())
    if found is None or not found.is_complete or not ASKED.exists():
        return []
    asked = json.loads(ASKED.read_text())
    heats = sorted({heat for runs in asked.values() for run in runs for heat in run}, key=float)
    standings = [with_answers(one, asked[one.entry.name], heats) for one in found.standings]
    columns = [REWARD, *(f"{BEST} at {heat}" for heat in heats)]
    against = {column: differences(standings, BASELINE, column) for column in columns}
    last = {name: last_temperature(runs) for name, runs in found.runs.items()}
    lines = [
        f"| rule | entropy of the samples | entropy at T = 1 | last T | {' | '.join(columns)} |",
        "|" + "---|" * (4 + len(columns)),
    ]
    for one in sorted(standings, key=lambda one: -one.mean(columns[1])):
        name = one.entry.name
        cells = [cell(one.mean(column), against[column].get(name)) for column in columns]
        numbers = f"{one.mean('entropy'):.3f} | {one.mean('entropy at 1.0'):.3f} | {last[name]:.2f}"
        lines.append(f"| `{name}` | {numbers} | {' | '.join(cells)} |")
    parts = ["## Does a loop on the temperature do as well?", TEXT, f"    {found.study.command}"]
    return [*parts, answer(standings, heats), "\n".join(lines)]


def with_answers(standing: Standing, runs: list[dict[str, dict[str, float]]], heats: list[str]) -> Standing:
    """Return a standing that also has what its last checkpoints answered, (seeds,) each."""
    names = {f"{BEST} at": BEST, "entropy at": "entropy"}
    more = {
        f"{label} {heat}": np.array([run[heat][key] for run in runs]) for label, key in names.items() for heat in heats
    }
    return replace(standing, values={**standing.values, **more})


def last_temperature(runs: list) -> float:
    """Return the mean sampling temperature of the last step, 1 without a loop."""
    series = [run.series("temperature")[1] for run in runs]
    return float(np.mean([values[-1] if len(values) else 1.0 for values in series]))


def answer(standings: list[Standing], heats: list[str]) -> str:
    """Return what the table says: pass@8 at each rule's best temperature against held entropy's."""
    best = {one.entry.name: max(heats, key=lambda heat: one.mean(f"{BEST} at {heat}")) for one in standings}
    own = [replace(one, values={BEST: one.values[f"{BEST} at {best[one.entry.name]}"]}) for one in standings]
    held = differences(own, HELD, BEST)
    said = [
        f"`{name}` {signed(one)} (best at T = {best[name]})" + ("" if one.verdict != ALIKE else ", not told apart")
        for name, one in held.items()
    ]
    return (
        f"Each rule at the temperature of evaluation that suits it best, {BEST} against `{HELD}` "
        f"(best at T = {best[HELD]}): {'; '.join(said)}."
    )
