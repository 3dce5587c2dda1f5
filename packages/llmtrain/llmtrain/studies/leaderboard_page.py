"""Markdown page of the leaderboard."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path

from entrostat.about.lineup import ALONE, LEFT_OUT, entries
from entrostat.about.titled_points import markdown

from ..evaluation.report import number
from ..settings.config import TrainConfig
from ..tasks.rewards import used
from .standings import NOTABLE, ByEntropy, Standing, of_another_start, standard_error
from .strengths import Curve, curves, readings, share_of_noise


def page(standings: Sequence[Standing], laws: Sequence[ByEntropy], config: TrainConfig, told: str, picture: str) -> str:
    """Return the text of the page.

    config: settings of all runs except controllers and seeds. told: command that writes the page. picture: its path
    relative to the page.
    """
    seeds = next(iter(s.values["reward"].size for s in standings if not s.error))
    ran = [s for s in standings if not s.error]
    parts = [
        _introduction(standings, config, seeds, told, picture),
        *map(_law, laws),
        _at(ran, config.target if isinstance(config.target, float) else None, config.eval.k),
        _holding(ran),
        _table(ran, config),
    ]
    failed = [f"- `{s.entry.name}`: {s.error}" for s in standings if s.error]
    if failed:
        parts += ["\n".join(["Could not run:", "", *failed])]
    return "\n\n".join(filter(None, parts)) + "\n"


ALL = f"Every controller except `{LEFT_OUT}`, which needs rollouts of another policy, trains"
READ = """Results are interpolated, linearly in the logarithm of the entropy, between the two values of a hyperparameter
whose entropies enclose this one. ± is the standard error of the interpolation."""
NOISE = """; all are means over seeds. ± is the standard error of each
number in a column, from the variance between the seeds of an entry, pooled over entries. It covers the effect of other
seeds, not of another model. A difference of two rows has √2 times that error: rows less than three errors apart may
change places with other seeds"""

START = (
    """The start model is warmed up where the runs are, and processors round differently: compare rows of one start."""
)
OTHERS = """
{count} of the entries, marked, began with another start model than the others; predictions leave them out."""
AGAIN = """They and several advantages are beside GRPO from one start on [another page](leaderboard_lm_2.md)."""


def _introduction(standings: Sequence[Standing], config: TrainConfig, seeds: int, told: str, picture: str) -> str:
    names = {s.entry.controller for s in standings}
    everyone = names >= {entry.controller for entry in entries()}
    verb = "trains" if len(names) == 1 else "train"
    who = ALL if everyone else f"{', '.join(f'`{name}`' for name in sorted(names))} {verb}"
    questions = ", ".join(Path(name).name for name in config.data.train_files) or config.task.name
    seen, noise = ("seed 0", "") if seeds == 1 else (f"seeds 0 to {seeds - 1}", NOISE)
    target = "their own targets" if config.target is None else f"{config.target} nats"
    if any("target" in s.entry.args for s in standings):
        target += ", or the target in that column"
    aimed = config.target is not None or any(s.entry.has_target for s in standings)
    held = f"\nControllers with a target hold {target}." if aimed else ""
    others = [s.entry.advantage for s in standings if s.entry.advantage]
    advantages = f"advantage {config.advantage}" + " or that of the second column" * bool(others)
    if others and len(others) >= len(standings) - 1:
        who = f"`{standings[0].entry.controller}` with each of {len(standings)} advantages trains"
    own = f"\n{AGAIN}" if everyone else ""
    apart = of_another_start(standings)
    start = START + (OTHERS.format(count=len(apart)) if apart else "") + own
    return f"""# Leaderboard in a language model

{who} the same model on {questions}:
{config.steps} rollout steps of {config.rollout.prompts} × {config.rollout.n} responses, {config.updates} optimizer \
steps each, learning rate {config.optim.lr:g}, {advantages}, {seen}.
Hyperparameters have the values of the preset `{config.controller_preset}`, except those in the second column.{held}

    {told}

{start}

{markdown(f"Reward and pass@{config.eval.k} against entropy", picture)}

*Named: the five with the highest values, and GRPO. Grey: the others, which have rows below. Open the picture to see
each one's name and numbers under the pointer.*

Entropy and reward are means over the last third of the steps, avg@{config.eval.k} and pass@{config.eval.k} are from
the last evaluation, on held-out problems{noise}."""


def _law(law: ByEntropy) -> str:
    noise = "" if isnan(law.noise) else f" Seed noise makes up {min(law.noise, 1):.0%} of the rest."
    apart = ", ".join(f"`{name}` ({distance:+.1f})" for name, distance in law.apart.items())
    named = f"More than {NOTABLE:g} standard errors away: {apart}." if apart else ""
    if not apart and not isnan(law.noise):
        named = f"No entry is more than {NOTABLE:g} standard errors away."
    alone, explained = ", ".join(f"`{name}`" for name in law.left_out), max(law.explained, 0)
    through = f", fitted without {alone} (too far from the others)," if alone else ""
    return (
        f"**Prediction of {law.metric} from entropy alone.** A parabola in log entropy{through} explains "
        f"{explained:.0%} of the variance between entries, each predicted from the others.{noise} {named}".strip()
    )


def _holding(standings: Sequence[Standing]) -> str:
    aimed = sorted((s for s in standings if s.target is not None), key=lambda s: s.mean("target_error"))
    if not aimed:
        return ""
    noise = standard_error(standings, "target_error")
    lines = [
        "## Holding the target",
        "",
        "Distance between the target and the mean entropy over the last third of the steps.",
        "",
    ]
    lines += [f"| controller | values | target | target error{_plus_minus(noise)} |", "|---|---|---|---|"]
    for s in aimed:
        error = number(s.mean("target_error"), ".3f")
        lines.append(f"| `{s.entry.controller}` | {s.entry.setting} | {s.target:g} | {error} |")
    return "\n".join(lines)


def _at(standings: Sequence[Standing], target: float | None, k: int) -> str:
    """Return the section with each curve's results at the target."""
    found_curves = curves(standings)
    if target is None or not found_curves:
        return ""
    metrics = ("reward", f"avg@{k}", f"pass@{k}")
    noise = {metric: standard_error(standings, metric) for metric in ("entropy", *metrics)}
    found = readings(found_curves, target, metrics, noise)
    lines = [f"## At {target:g} nats", "", READ, ""]
    lines += ["| " + " | ".join(("controller", "value", *metrics)) + " |", "|" + "---|" * 5]
    for reading in found:
        numbers = (number(reading.means[m], ".3f") + _plus_minus(reading.errors[m]) for m in metrics)
        value = f"{reading.curve.hyperparameter}={reading.value:.3g}"
        lines.append("| " + " | ".join((f"`{reading.curve.name}`", value, *numbers)) + " |")
    shares = {metric: share_of_noise(found, metric) for metric in metrics}
    told = ", ".join(f"{min(share, 1):.0%} for {metric}" for metric, share in shares.items() if not isnan(share))
    if told:
        lines += ["", f"Share of seed noise in the variance between controllers: {told}."]
    reached = [reading.curve for reading in found]
    missed = [_range(curve) for curve in found_curves if curve not in reached]
    if missed:
        lines += ["", f"Not reached with the tested values, which gave these entropies: {', '.join(missed)}."]
    return "\n".join(lines)


def _range(curve: Curve) -> str:
    """Return a curve's name with the ranges of its hyperparameter and entropy."""
    ends = [s.mean("entropy") for s in curve.standings]
    values = [curve.value(s) for s in (curve.standings[0], curve.standings[-1])]
    tried = f"{curve.hyperparameter} from {values[0]:g} to {values[1]:g}"
    return f"`{curve.name}` ({tried}: {min(ends):.3f} to {max(ends):.3f} nats)"


def _table(standings: Sequence[Standing], config: TrainConfig) -> str:
    metrics = ("entropy", "reward", f"avg@{config.eval.k}", f"pass@{config.eval.k}")
    alone, apart = {} if any(used(config.reward)) or config.data.train_files else ALONE, of_another_start(standings)
    headings = (f"{metric}{_plus_minus(standard_error(standings, metric))}" for metric in metrics)
    lines = ["## All entries", "", "Highest reward first.", ""]
    lines += ["| " + " | ".join(("controller", "values", *headings, "notes")) + " |", "|" + "---|" * 7]
    for s in sorted(standings, key=lambda s: -s.mean("reward")):
        numbers = (number(s.mean(metric), ".3f") for metric in metrics)
        note = f"trained exactly as `{s.same_as}`" if s.same_as else alone.get(s.entry.advantage or "", "")
        if s.entry.controller == "temperature_loop" or s.entry.args.get("mode") == "temperature":
            note = "entropy and reward at the temperature that it sets"
        if s.entry.name in apart:
            note = "; ".join(filter(None, (note, "another start model")))
        lines.append("| " + " | ".join((f"`{s.entry.controller}`", s.entry.setting, *numbers, note)) + " |")
    return "\n".join(lines)


def _plus_minus(error: float) -> str:
    return "" if isnan(error) else f" ±{error:.3f}"
