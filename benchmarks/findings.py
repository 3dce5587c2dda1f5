"""Studies of entropy control in a language model: docs/findings.md and its pictures, from compact logs.

    python benchmarks/findings.py             write the page from the logs in docs/data/findings
    python benchmarks/findings.py --seeds 2   the same of the first two seeds, while the others are being trained
    python benchmarks/findings.py --commands  print the command that trains each study

The commands resume: runs with a compact log in docs/data/findings are not trained again, and others continue from their
checkpoints. A rule is on the page once all its seeds are there.

Null results, written before the runs: no rule is told apart from GRPO in held-out avg@8 or pass@8 (a rule pays
nothing); pass@8 is above GRPO's only where avg@8 is below it (control trades one for the other); for `thermostat
mode=anchor`, reward and pass@8 within the interval of mode=bonus at the same target (solving for the penalty is worth
nothing).
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from math import hypot
from pathlib import Path

import numpy as np
from agreement import agreement
from heated import heated
from objectives import objectives
from studies import AVERAGE, BASELINE, BEST, DOCS, REWARD, SCORES, STUDIES, Results, cell, results, signed

from llmtrain.evaluation.report import number
from llmtrain.studies.baseline import ALIKE, CONFIDENCE, HIGHER, LOWER, Difference, crossing, curve, differences
from llmtrain.studies.comparison import COLOURS, Run
from llmtrain.studies.standings import standard_error
from llmtrain.studies.strengths import Reading, curves, readings

COPIED = DOCS / "data/copied.json"
"""Rewards that were read again, by study; see copied_rewards.py."""
BIN = 20
"""Rollout steps whose mean is one point of a drawn curve."""


INTRODUCTION = f"""Made by `python benchmarks/findings.py` from the logs in `docs/data/findings`. Every rule trains
the same model from the same start; GRPO is the entry `ppo`. Entropy (nats) and training reward are means over the
last third of the rollout steps; {AVERAGE} and {BEST} are of held-out problems after the last step. A difference is
from GRPO, ± half of its interval; all intervals of a column hold together with {CONFIDENCE:.0%} (Student's t, with
the variance between seeds pooled over rules, and divided by the number of rules as Bonferroni does). **Bold**: the
interval leaves out 0. Everything else cannot be told apart with these seeds. A conclusion would change if such an
interval contained 0, or another left it out; no number of seeds covers another model."""
BY_TARGET = """± is one standard error of a mean. `kl_ref` is read at the entropy that thermostat reached, between the
two of its coefficients that enclose it: the best coefficient for this entropy, known only after training with all."""
BEST_OF = 4
"""Upper limit for the rules that are named for a score."""
CHOICES = f"""Of complete studies: rules with a higher score than GRPO beyond the intervals and none of the three scores
lower, at most {BEST_OF}, largest gain first; the sections below have all. `kl_ref` and mode=anchor need a forward pass
of the reference policy per rollout, mode=bonus does not. Not varied here: the optimizer steps per rollout (2) and the
model. Runs of 160 steps: [the leaderboard](leaderboard_lm.md)."""
BETWEEN = """If control paid by hindering memorising alone, its gains would be smaller on problems that are seen once,
and these numbers below 0."""


def page(found: Sequence[Results]) -> str:
    """Return the page in Markdown."""
    named = {one.study.name: one for one in found}
    complete = [one for one in found if one.is_complete]
    parts = ["# When does entropy control pay?", INTRODUCTION, *choices(complete)]
    for one in found:
        parts += section(one)
        if one.study.repeating in named:
            parts += between(named[one.study.repeating], one)
    return "\n\n".join([*parts, *objectives(), *heated(), *agreement()]) + "\n"


def choices(found: Sequence[Results]) -> list[str]:
    """Return which rules raise a score, and lower no other, in each study, best first."""
    lines = [f"| to raise | {' | '.join(one.study.title.lower() for one in found)} |", "|" + "---|" * (1 + len(found))]
    for metric in SCORES:
        cells = []
        for one in found:
            against = {score: one.against(score) for score in SCORES}
            raised = [name for name, it in against[metric].items() if it.verdict == HIGHER]
            raised = [name for name in raised if all(of[name].verdict != LOWER for of in against.values())]
            raised.sort(key=lambda name: -against[metric][name].mean)
            cells.append(", ".join(f"`{name}` {signed(against[metric][name])}" for name in raised[:BEST_OF]))
        lines.append(f"| {metric} | {' | '.join(cell or 'none: GRPO cannot be told apart' for cell in cells)} |")
    return ["## Which controller should I use?", CHOICES, "\n".join(lines)]


def between(repeats: Results, never: Results) -> list[str]:
    """Return how much more the rules that two studies share gain over GRPO in the second."""
    shared = [name for name in never.runs if name in repeats.runs and name != BASELINE]
    lines = [f"| gain over GRPO, never − repeat | {' | '.join(SCORES)} |", "|" + "---|" * (1 + len(SCORES))]
    for name in shared:
        cells = []
        for metric in SCORES:
            first, second = (
                differences(one.standings, BASELINE, metric, len(shared))[name] for one in (repeats, never)
            )
            cells.append(signed(Difference(second.mean - first.mean, hypot(first.half, second.half), second.seeds)))
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return ["### Against problems that repeat", BETWEEN, "\n".join(lines)]


def section(found: Results) -> list[str]:
    """Return the paragraphs of a study."""
    study, config = found.study, found.base
    protocol = (
        f"{study.question} {config.steps} rollout steps of {config.rollout.prompts} × {config.rollout.n} responses, "
        f"{config.updates} optimizer steps each, learning rate {config.optim.lr:g}, seeds 0 to {study.seeds - 1}, "
        f"{config.task.test_problems} held-out problems. {len(found.runs)} of {found.planned} rules have finished."
    )
    return [
        f"## {study.title}",
        protocol,
        "\n".join(f"    {command}" for command in (*study.model, study.command)),
        f"![Entropy, training reward and {BEST} by rollout step](findings/{study.name}.png)",
        "*Means over seeds, shaded by one standard error of each.*",
        *answers(found),
        table(found),
        copies(found),
        *targets(found),
    ]


def answers(found: Results) -> list[str]:
    """Return the answers that follow from the intervals alone."""
    lines = []
    for metric, told in ((AVERAGE, f"Held-out {AVERAGE}"), (BEST, f"Held-out {BEST}"), (REWARD, "Training reward")):
        all_of = found.against(metric)
        parts = []
        for verdict, words in ((HIGHER, "higher than GRPO's"), (LOWER, "lower")):
            names = [f"`{name}` ({one.mean:+.3f})" for name, one in all_of.items() if one.verdict == verdict]
            parts.append(f"{words}: {', '.join(names) or 'no rule'}")
        alike = [one for one in all_of.values() if one.verdict == ALIKE]
        open_ = f"; {len(alike)} of {len(all_of)} cannot be told apart" if alike else ""
        lines.append(f"- {told}: {'; '.join(parts)}{open_}.")
    gaps = {name: gap(runs) for name, runs in found.runs.items()}
    told = ", ".join(
        f"`{name}` {mean:+.3f} ± {error:.3f}" for name, (mean, error) in gaps.items() if name in found.study.drawn
    )
    lines.append(f"- Training reward minus held-out {AVERAGE}, ± one standard error over seeds: {told}.")
    return ["\n".join(lines)]


def gap(runs: Sequence[Run]) -> tuple[float, float]:
    """Return how far the training reward is above held-out avg@8 at the end, and the standard error over seeds."""
    values = np.array([run.late("reward") - run.last(f"eval/{AVERAGE}") for run in runs])
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5)


def table(found: Results) -> str:
    """Return the table of all rules, highest held-out avg@8 first."""
    against = {metric: found.against(metric) for metric in SCORES}
    lines = [
        f"| rule | entropy | {' | '.join(SCORES)} | {AVERAGE} above GRPO's from step | {BEST} from step |",
        "|" + "---|" * 7,
    ]
    for s in sorted(found.standings, key=lambda s: -s.mean(AVERAGE)):
        name = s.entry.name
        cells = [f"`{name}`", f"{s.mean('entropy'):.3f}"]
        cells += [cell(s.mean(metric), against[metric].get(name)) for metric in SCORES]
        for metric in (AVERAGE, BEST):
            at = crossing(found.runs[name], found.runs[BASELINE], f"eval/{metric}") if name != BASELINE else None
            cells.append("" if name == BASELINE else "–" if at is None else str(at))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def copies(found: Results) -> str:
    """Return the share of rewards that were copies of the question: as logged, and of the run that was read again."""
    logged = [run.series("verify/copied")[1] for runs in found.runs.values() for run in runs]
    shares = [float(values.mean()) for values in logged if len(values)]
    told = f"At most {max(shares):.1%} of a run's rewards (`verify/copied`)." if shares else ""
    stored = json.loads(COPIED.read_text()) if COPIED.exists() else {}
    if read := stored.get(found.study.name):
        count = read["rewarded"]
        refused, inside = (f"{read[name]:,} ({read[name] / count:.1%})" for name in ("refused", "in_prompt"))
        told += (
            f" {read['what']}: of {count:,} rewarded responses, {refused} are refused by the verifier that sees the "
            f"question, and {inside} have a right answer that stands in the prompt."
        )
        if examples := ", ".join(f"`{answer}` for `{truth}`" for answer, truth in read["examples"].items()):
            told += f" Refused: {examples}."
    return f"**Copied answers.** {told.strip() or 'Not measured.'}"


def targets(found: Results) -> list[str]:
    """Return what each mode of thermostat gives at each target, beside kl_ref at the entropy that was reached."""
    rows = [s for s in found.standings if s.entry.controller == "thermostat"]
    if len({str(s.entry.args.get("target")) for s in rows}) < 2:
        return []
    pooled = {metric: standard_error(found.standings, metric) for metric in ("entropy", *SCORES)}
    penalties = [one for one in curves(found.standings) if one.name == "kl_ref"]
    headings = [f"{metric} ±{error:.3f}" for metric, error in pooled.items()]
    lines = [
        f"| mode | target | {' | '.join(headings)} | `kl_ref`: β, {', '.join(SCORES)} |",
        "|" + "---|" * 7,
    ]
    for s in sorted(rows, key=lambda s: (str(s.entry.args["target"]), str(s.entry.args["mode"]))):
        means = [f"{s.mean(metric):.3f}" for metric in pooled]
        beside = reading(readings(penalties, s.mean("entropy"), SCORES, pooled))
        lines.append(f"| {' | '.join([s.entry.args['mode'], str(s.entry.args['target']), *means, beside])} |")
    return ["### By target", BY_TARGET, "\n".join(lines), *anchor_or_bonus(found)]


def anchor_or_bonus(found: Results) -> list[str]:
    """Return how mode=anchor differs from mode=bonus at each target that both have."""
    names = {s.entry.name for s in found.standings}
    pairs = {}
    for s in found.standings:
        if s.entry.args.get("mode") == "anchor" and (other := s.entry.name.replace("anchor", "bonus")) in names:
            pairs[str(s.entry.args["target"])] = (s.entry.name, other)
    if not pairs:
        return []
    lines = [f"| anchor − bonus at target | {' | '.join(SCORES)} |", "|" + "---|" * (1 + len(SCORES))]
    for target, (anchor, bonus) in pairs.items():
        of = [differences(found.standings, bonus, metric, len(pairs))[anchor] for metric in SCORES]
        lines.append(f"| {target} | {' | '.join(signed(one) for one in of)} |")
    return ["\n".join(lines)]


def reading(found: Sequence[Reading]) -> str:
    """Return kl_ref's interpolated results, or a dash if its coefficients do not enclose the entropy."""
    if not found:
        return "–"
    numbers = (f"{found[0].means[metric]:.3f} ±{found[0].errors[metric]:.3f}" for metric in SCORES)
    return f"{number(found[0].value, '.3f')}, {', '.join(numbers)}"


def draw(found: Results, path: Path) -> None:
    """Draw entropy, training reward and held-out pass@8 against steps: means over seeds, and one standard error."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = {"entropy": "entropy (nats)", "reward": "training reward", f"eval/{AVERAGE}": f"{AVERAGE}, held-out"}
    panels[f"eval/{BEST}"] = f"{BEST}, held-out"
    fig, axes = plt.subplots(1, len(panels), figsize=(15, 4), layout="constrained")
    for axis, (metric, label) in zip(axes, panels.items(), strict=True):
        for i, name in enumerate(name for name in found.study.drawn if name in found.runs):
            steps, values = curve(found.runs[name], metric)
            if not metric.startswith("eval/"):
                whole = len(steps) // BIN * BIN
                steps, values = (
                    steps[:whole].reshape(-1, BIN).mean(1),
                    values[:, :whole].reshape(len(values), -1, BIN).mean(2),
                )
            mean, error = values.mean(0), values.std(0, ddof=1) / len(values) ** 0.5
            axis.plot(steps, mean, color=COLOURS[i], label="GRPO" if name == BASELINE else name)
            axis.fill_between(steps, mean - error, mean + error, color=COLOURS[i], alpha=0.2, linewidth=0)
        axis.set(xlabel="rollout step", ylabel=label)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=110)
    plt.close(fig)


def main() -> None:
    """Write the page, or print the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, help="number of seeds, from seed 0; all by default")
    parser.add_argument("--commands", action="store_true", help="print the command that trains each study")
    given = parser.parse_args()
    if given.commands:
        print("\n\n".join("\n".join((*study.model, study.command)) for study in STUDIES))
        return
    studies = [replace(study, seeds=given.seeds or study.seeds) for study in STUDIES]
    found = [one for study in studies if (one := results(study))]
    if not found:
        raise SystemExit("no study has two finished rules in docs/data/findings: train with one of the commands")
    for one in found:
        draw(one, DOCS / "findings" / f"{one.study.name}.png")
    (DOCS / "findings.md").write_text(page(found), encoding="utf-8")
    print(DOCS / "findings.md")


if __name__ == "__main__":
    main()
