"""Objectives that aim at pass@k beside held entropy, alone and together; a section of docs/findings.md.

Null result, written before the runs: neither advantage is told apart from GRPO in held-out pass@8, or from thermostat
and kl_ref, which control the entropy of GRPO.
"""

import shlex
from dataclasses import replace

from studies import AVERAGE, BASELINE, BEST, REWARD, STUDIES, Results, Study, cell, results, signed

from llmtrain.studies.baseline import ALIKE, HIGHER, differences
from llmtrain.studies.standings import Standing

HELD = "thermostat mode=bonus target=0.26"
ADVANTAGES = {
    "grpo": ("grpo", (HELD, "thermostat mode=anchor target=0.26", "kl_ref beta=0.05")),
    "max_rl": ("max_rl", (HELD,)),
    "pass_at_k": ("pass_at_k k=4 variant=analytic", (HELD,)),
}
"""Advantage, and rules that it is trained under, by the end of its study's name."""
COMPARED = "thermostat (mode=bonus, target=0.26)"
OBJECTIVES = f"""The training of [problems that repeat](#problems-that-repeat), with other advantages than GRPO's:
[`max_rl`](controllers.md#max_rl-advantage), (R − mean)/mean, and [`pass_at_k`](controllers.md#pass_at_k-advantage),
pass@4 by its analytic form, alone and under a thermostat. All rows were trained side by side. The study above is days
older, and its warmed-up model is another one, so numbers of the same rule differ. A difference is from GRPO; the last
column is the difference of {BEST} from `{COMPARED}`. All intervals of a column hold together with 95%."""


def study_of(name: str) -> Study:
    repeat = next(study for study in STUDIES if study.name == "countdown")
    advantage, rules = ADVANTAGES[name]
    flags = f"{repeat.flags} --advantage {shlex.quote(advantage)}"
    return replace(repeat, name=f"countdown_{name}", flags=flags, rules=(BASELINE, *rules))


def named(standing: Standing, advantage: str) -> Standing:
    """Return the standing under a name that tells the advantage, if it is not GRPO's."""
    entry = standing.entry
    if advantage == "grpo":
        return standing
    name = advantage if entry.controller == BASELINE else f"{advantage} + {entry.controller}"
    return replace(standing, entry=replace(entry, controller=name))


def objectives() -> list[str]:
    """Return the section, empty before all its studies are finished."""
    found: dict[str, Results] = {name: one for name in ADVANTAGES if (one := results(study_of(name))) is not None}
    if not all(name in found and found[name].is_complete for name in ADVANTAGES):
        return []
    standings = [named(one, name) for name, study in found.items() for one in study.standings]
    against = {metric: differences(standings, BASELINE, metric) for metric in (REWARD, AVERAGE, BEST)}
    held = differences(standings, COMPARED, BEST)
    lines = [
        f"| advantage and rule | entropy | {REWARD} | {AVERAGE} | {BEST} | {BEST} − thermostat's |",
        "|" + "---|" * 6,
    ]
    for one in sorted(standings, key=lambda one: -one.mean(BEST)):
        name = one.entry.name
        cells = [cell(one.mean(metric), against[metric].get(name)) for metric in against]
        last = "" if name == COMPARED else signed(held[name])
        lines.append(f"| `{name}` | {one.mean('entropy'):.3f} | {' | '.join(cells)} | {last} |")
    raised = [f"`{name}`" for name, one in against[BEST].items() if one.verdict == HIGHER]
    apart = [f"`{name}`" for name, one in held.items() if one.verdict != ALIKE and name != BASELINE]
    answer = (
        f"Held-out {BEST} above GRPO's: {', '.join(raised) or 'no row'}. Told apart from the thermostat's, besides "
        f"GRPO: {', '.join(apart) or 'no row'}."
    )
    commands = "\n".join(f"    {study.study.command}" for study in found.values())
    return ["## Does an objective that aims at pass@k do as well?", OBJECTIVES, commands, answer, "\n".join(lines)]
