"""Objectives that aim at pass@k beside held entropy, alone and together; a section of docs/findings.md.

Null result, written before the runs: neither advantage is told apart from GRPO in held-out pass@8, or from thermostat
and kl_ref, which control the entropy of GRPO.
"""

import shlex
from collections.abc import Iterator
from dataclasses import replace

from studies import AVERAGE, BASELINE, BEST, REWARD, STUDIES, Results, cell, results, signed

from llmtrain.studies.baseline import ALIKE, HIGHER, differences
from llmtrain.studies.standings import Standing

ADVANTAGES = {"max_rl": "max_rl", "pass_at_k": "pass_at_k k=4 variant=analytic"}
"""Advantages in place of GRPO's, by the end of their study's name."""
BESIDE = (
    BASELINE,
    "thermostat (mode=bonus, target=0.26)",
    "thermostat (mode=anchor, target=0.26)",
    "kl_ref (beta=0.05)",
)
"""Entries of the study on problems that repeat that they are compared with."""
OBJECTIVES = f"""The training of [problems that repeat](#problems-that-repeat), with other advantages than GRPO's:
[`max_rl`](controllers.md#max_rl-advantage), (R − mean)/mean, and [`pass_at_k`](controllers.md#pass_at_k-advantage),
pass@4 by its analytic form, alone and under a thermostat. A difference is from GRPO; the last column is the difference
of {BEST} from `thermostat (mode=bonus, target=0.26)` on GRPO's advantage. All intervals of a column hold together with
95%."""


def studied() -> Iterator[Results]:
    """Yield what is finished of the study of each advantage."""
    repeat = next(study for study in STUDIES if study.name == "countdown")
    for name, advantage in ADVANTAGES.items():
        flags = f"{repeat.flags} --advantage {shlex.quote(advantage)}"
        study = replace(
            repeat, name=f"countdown_{name}", flags=flags, rules=(BASELINE, "thermostat mode=bonus target=0.26")
        )
        if (found := results(study, fewest=1)) is not None:
            yield found


def named(standing: Standing, advantage: str) -> Standing:
    """Return the standing under a name that tells the advantage."""
    entry = standing.entry
    name = advantage if entry.controller == BASELINE else f"{advantage} + {entry.controller}"
    return replace(standing, entry=replace(entry, controller=name))


def objectives(repeat: Results) -> list[str]:
    """Return the section, empty before a study is finished. repeat: of problems that repeat."""
    others = list(studied())
    if not others:
        return []
    standings = [one for one in repeat.standings if one.entry.name in BESIDE]
    for found, advantage in zip(others, ADVANTAGES, strict=False):
        standings += [named(one, advantage) for one in found.standings]
    against = {metric: differences(standings, BASELINE, metric) for metric in (REWARD, AVERAGE, BEST)}
    held = differences(standings, BESIDE[1], BEST)
    lines = [
        f"| advantage and rule | entropy | {REWARD} | {AVERAGE} | {BEST} | {BEST} − thermostat's |",
        "|" + "---|" * 6,
    ]
    for one in sorted(standings, key=lambda one: -one.mean(BEST)):
        name = one.entry.name
        cells = [cell(one.mean(metric), against[metric].get(name)) for metric in against]
        last = "" if name == BESIDE[1] else signed(held[name])
        lines.append(f"| `{name}` | {one.mean('entropy'):.3f} | {' | '.join(cells)} | {last} |")
    commands = "\n".join(f"    {found.study.command}" for found in others)
    raised = [f"`{name}`" for name, one in against[BEST].items() if one.verdict == HIGHER]
    apart = [f"`{name}`" for name, one in held.items() if one.verdict != ALIKE and name != BASELINE]
    answer = (
        f"Held-out {BEST} above GRPO's: {', '.join(raised) or 'no row'}. Told apart from the thermostat's, besides "
        f"GRPO: {', '.join(apart) or 'no row'}."
    )
    again = results(replace(repeat.study, name="countdown_again", rules=(BASELINE,), seeds=1), fewest=1)
    if again is not None:
        new, old = again.standings[0], next(one for one in repeat.standings if one.entry.name == BASELINE)
        each = ", ".join(
            f"{metric} {new.mean(metric):.3f} (before: {', '.join(f'{x:.3f}' for x in old.values[metric])})"
            for metric in against
        )
        answer += (
            "\n\nThe rows of GRPO's advantage were trained days before the others. GRPO, seed 0, trained once more "
            f"beside the others: {each}. So differences of a few hundredths between the two kinds of rows say nothing."
        )
    return ["## Does an objective that aims at pass@k do as well?", OBJECTIVES, commands, answer, "\n".join(lines)]
