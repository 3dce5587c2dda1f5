"""Studies of entropy control in a language model: docs/findings.md, its pictures and the README, from compact logs.

    python benchmarks/findings.py             write the page, and what the README says of it, from docs/data/findings
    python benchmarks/findings.py --seeds 2   the same of the first two seeds, while the others are being trained
    python benchmarks/findings.py --commands  print the command that trains each study

The commands resume: runs with a compact log in docs/data/findings are not trained again, and others continue from their
checkpoints. A rule is on the page once all its seeds are there, or all rules have the same two seeds or more.

Null results, written before the runs: no rule is told apart from GRPO in held-out avg@8 or pass@8 (a rule pays
nothing); pass@8 is above GRPO's only where avg@8 is below it (control trades one for the other); for `thermostat
mode=anchor`, reward and pass@8 within the interval of mode=bonus at the same target (solving for the penalty is worth
nothing).
"""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import hypot
from pathlib import Path
from textwrap import fill

import numpy as np
import pretrained
from agreement import agreement
from heated import heated
from objectives import objectives
from studies import AVERAGE, BASELINE, BEST, DOCS, REWARD, SCORES, STUDIES, Results, Study, cell, results, signed

from entrostat.about.colours import linestyle, styles
from entrostat.about.end_labels import End, label_ends
from llmtrain.evaluation.report import number
from llmtrain.studies import compact_logs
from llmtrain.studies.baseline import ALIKE, CONFIDENCE, HIGHER, LOWER, Difference, crossing, curve, differences
from llmtrain.studies.comparison import Run
from llmtrain.studies.standings import standard_error
from llmtrain.studies.strengths import Reading, curves, readings

PLANNED = "constraints"
"""Study whose design is on the page before its runs are; see pretrained.py."""
COPIED = DOCS / "data/copied.json"
"""Rewards that were read again, by study; see copied_rewards.py."""
BIN = 20
"""Rollout steps whose mean is one point of a drawn curve."""
PANELS = {
    "entropy": "entropy (nats)",
    "reward": "training reward",
    f"eval/{AVERAGE}": f"{AVERAGE}, held-out",
    f"eval/{BEST}": f"{BEST}, held-out",
}
"""Titles of the panels, by metric."""
README = "countdown_wide", ("entropy", f"eval/{BEST}")
"""Study and metrics of docs/findings/readme.png."""


INTRODUCTION = f"""Every rule trains the same model from the same start. GRPO is the entry `ppo`.

- Entropy (nats) and training reward: means over the last third of the rollout steps.
- {AVERAGE} and {BEST}: of held-out problems, after the last step.
- A difference is from GRPO, ± half of its interval. All intervals of a column hold together with {CONFIDENCE:.0%}
  (Student's t, the variance between seeds pooled over rules, Bonferroni). **Bold**: the interval leaves out 0.

More seeds could overturn a result that is not bold. None of this says anything about larger models.

Made by `python benchmarks/findings.py` from the logs in `docs/data/findings`."""
BY_TARGET = """± is one standard error of a mean. `kl_ref` is read at the entropy that the thermostat reached,
between two of its coefficients. Nobody knows this coefficient before training with all of them."""
BEST_OF = 4
"""Upper limit for the rules that are named for a score."""
CHOICES = f"""The table lists up to {BEST_OF} rules that beat GRPO on a score and lose on none, largest gain first.
If all lose on another, the one with the largest gain is shown. All rules are in the sections below, and runs of 160
steps in [the leaderboard](leaderboard_lm.md). `kl_ref` and mode=anchor need a forward pass of the reference policy per
rollout; mode=bonus does not."""
BETWEEN = """If control paid only because it hinders memorising, its gains would be smaller on problems that are seen
once, and these numbers below 0."""


def page(found: Sequence[Results]) -> str:
    """Return the page in Markdown."""
    named = {one.study.name: one for one in found}
    complete = [one for one in found if one.is_complete]
    parts = ["# When does entropy control pay?", INTRODUCTION, *choices(complete)]
    for study in STUDIES:
        if one := named.get(study.name):
            parts += section(one)
        elif study.name == PLANNED:
            parts += [f"## {study.title}", study.question, *commands(study)]
        if study.name == PLANNED:
            parts += pretrained.paragraphs(study, one)
        if one and study.name == PLANNED:
            parts += [*pretrained.further(one), *default_mode(one)]
        if one and study.repeating in named:
            parts += between(named[study.repeating], one)
    return "\n\n".join([*parts, *objectives(), *heated(), *agreement()]) + "\n"


def choices(found: Sequence[Results]) -> list[str]:
    """Return which rules raise a score in each study, those that lower no other, best first; else the best of all."""
    return ["## Which controller should I use?", CHOICES, best("to raise", "", found, BEST_OF)]


def best(title: str, before: str, found: Sequence[Results], most: int) -> str:
    """Return the table of at most `most` rules for each score and study. title: of scores; before: word before each."""
    lines = [f"| {title} | {' | '.join(one.study.title.lower() for one in found)} |", "|" + "---|" * (1 + len(found))]
    for metric in SCORES:
        cells = []
        for one in found:
            against = {score: one.against(score) for score in SCORES}
            raised = [name for name, it in against[metric].items() if it.verdict == HIGHER]
            raised.sort(key=lambda name: -against[metric][name].mean)
            lost = {name: [score for score, of in against.items() if of[name].verdict == LOWER] for name in raised}
            told = {name: f"`{name}` {signed(against[metric][name])}" for name in raised}
            free = [told[name] for name in raised if not lost[name]]
            paid = [f"only with less {' and '.join(lost[name])}: {told[name]}" for name in raised if lost[name]]
            cells.append(", ".join(free[:most] or paid[:1]) or "none: GRPO cannot be told apart")
        lines.append(f"| {before}{metric} | {' | '.join(cells)} |")
    return "\n".join(lines)


def in_readme(text: str, found: Sequence[Results]) -> str:
    """Return the README with its table, and its paragraph on a pretrained model, made anew from the results."""
    complete = [one for one in found if one.is_complete]
    table = best("you want", "more ", complete, 1).replace("**", "")
    text = re.sub(r"^\| you want \|.*?\n\n", lambda _: f"{table}\n\n", text, count=1, flags=re.DOTALL | re.MULTILINE)
    planned = [one for one in found if one.study.name == PLANNED]
    said = fill(pretrained.sentence(planned[0]), 120, break_long_words=False, break_on_hyphens=False) if planned else ""
    about = r"^[^\n|]*(?:on a pretrained model(?:, at a price)?\*{0,2} \(|For a pretrained model it is).*?\n\n"
    return re.sub(about, lambda _: f"{said}\n\n", text, count=1, flags=re.DOTALL | re.MULTILINE) if said else text


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
        f"{config.updates} optimizer steps each, learning rate {config.optim.lr:g}, seeds 0 to {found.seeds - 1}, "
        f"{config.task.test_problems} held-out problems. {len(found.runs)} of {found.planned} rules have finished"
        f"{'' if found.seeds == study.seeds else f', {found.seeds} of {study.seeds} seeds each'}."
    )
    return [
        f"## {study.title}",
        protocol,
        *early(found),
        *commands(study),
        *machines(study),
        f"![Entropy, training reward and {BEST} by rollout step](findings/{study.name}.png)",
        "*Means over seeds, shaded by one standard error of each.*",
        *answers(found),
        table(found),
        copies(found),
        *targets(found),
    ]


def early(found: Results) -> list[str]:
    """Return what a table of fewer seeds than planned is worth; empty once all are finished."""
    if found.seeds == found.study.seeds:
        return []
    return [
        f"**Not final.** The plan judges at {found.study.seeds} seeds. This table was also looked at with fewer, so "
        f"that intervals of {CONFIDENCE:.0%} hold less often than they say."
    ]


def machines(study: Study) -> list[str]:
    """Return which processors made the runs of a study; empty if no log says it."""
    made = compact_logs.processors(DOCS / "data" / "findings" / study.name)
    unknown = made.pop("", 0)
    if not made:
        return []
    told = ", ".join(f"{count} on {name}" for name, count in sorted(made.items()))
    return [f"Runs by processor: {told}{f'; {unknown} older logs do not say' if unknown else ''}."]


def commands(study: Study) -> list[str]:
    """Return the commands that train a study's runs, as a block of code."""
    return ["\n".join(f"    {command}" for command in (*study.model, study.command))]


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
    if not (against := anchor_against_bonus(found)):
        return []
    lines = [f"| anchor − bonus at target | {' | '.join(SCORES)} |", "|" + "---|" * (1 + len(SCORES))]
    lines += [f"| {target} | {' | '.join(map(signed, of.values()))} |" for target, of in against.items()]
    return ["\n".join(lines)]


def anchor_against_bonus(found: Results) -> dict[str, dict[str, Difference]]:
    """Return the differences of mode=anchor from mode=bonus in each score, by the targets that both have."""
    names = {s.entry.name for s in found.standings}
    pairs = {}
    for s in found.standings:
        if s.entry.args.get("mode") == "anchor" and (other := s.entry.name.replace("anchor", "bonus")) in names:
            pairs[str(s.entry.args["target"])] = (s.entry.name, other)
    return {
        target: {metric: differences(found.standings, bonus, metric, len(pairs))[anchor] for metric in SCORES}
        for target, (anchor, bonus) in pairs.items()
    }


def default_mode(found: Results) -> list[str]:
    """Return the comparison of two modes, and which one it makes the default of thermostat."""
    against = anchor_against_bonus(found)
    gains, losses = (
        [score for score in SCORES if any(of[score].verdict == verdict for of in against.values())]
        for verdict in (HIGHER, LOWER)
    )
    chosen = "anchor" if gains and not losses else "bonus"
    told = f"gains on {' and '.join(gains) or 'none'} and loses on {' and '.join(losses) or 'none'}"
    said = f"`anchor` would be the default mode of `thermostat` if it gained on a score and lost on none. It {told}:"
    return [*anchor_or_bonus(found), f"{said} the default is `{chosen}`."] if against else []


def reading(found: Sequence[Reading]) -> str:
    """Return kl_ref's interpolated results, or a dash if its coefficients do not enclose the entropy."""
    if not found:
        return "–"
    numbers = (f"{found[0].means[metric]:.3f} ±{found[0].errors[metric]:.3f}" for metric in SCORES)
    return f"{number(found[0].value, '.3f')}, {', '.join(numbers)}"


def draw(found: Results, path: Path, panels: Mapping[str, str] = PANELS) -> None:
    """Draw metrics against rollout steps: means over seeds, shaded by one standard error, names at the ends."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawn = {name: found.runs[name] for name in found.study.drawn if name in found.runs}
    rows = len(panels) // 2
    fig, axes = plt.subplots(rows, 2, figsize=(8, 2.6 * rows + 0.4), layout="constrained", sharex=True, squeeze=False)
    for axis, (metric, label) in zip(axes.flat, panels.items(), strict=True):
        ends = []
        for (name, runs), style in zip(drawn.items(), styles(list(drawn)), strict=True):
            steps, values = curve(runs, metric)
            if not metric.startswith("eval/"):
                whole = len(steps) // BIN * BIN
                steps, values = (
                    steps[:whole].reshape(-1, BIN).mean(1),
                    values[:, :whole].reshape(len(values), -1, BIN).mean(2),
                )
            mean, error = values.mean(0), values.std(0, ddof=1) / len(values) ** 0.5
            axis.plot(steps, mean, color=style.colour, linestyle=linestyle(style.dash))
            axis.fill_between(steps, mean - error, mean + error, color=style.colour, alpha=0.2, linewidth=0)
            ends.append(End(short(name), (steps[-1], mean[-1]), style.colour))
        axis.set_title(label, fontsize=11)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        label_ends(axis, ends)
    for axis in axes[-1]:
        axis.set_xlabel("rollout step")
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=150)
    plt.close(fig)


def short(name: str) -> str:
    """Return the name of an entry without settings, except thermostat's mode; GRPO for the baseline."""
    controller, _, settings = name.partition(" (")
    mode = re.search(r"mode=(\w+)", settings)
    return "GRPO" if name == BASELINE else f"{controller}, {mode[1]}" if mode else controller


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
        if one.study.name == README[0]:
            draw(one, DOCS / "findings/readme.png", {metric: PANELS[metric] for metric in README[1]})
    (DOCS / "findings.md").write_text(page(found), encoding="utf-8")
    readme = DOCS.parent / "README.md"
    readme.write_text(in_readme(readme.read_text(encoding="utf-8"), found), encoding="utf-8")
    print(DOCS / "findings.md", readme)


if __name__ == "__main__":
    main()
