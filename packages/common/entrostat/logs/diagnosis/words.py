"""Facts and advice in words: the same sentences on the command line and in the explorer."""

from shlex import quote
from textwrap import fill, indent
from typing import NamedTuple

from .advice import Advice, advise
from .events import LASTS
from .facts import CLIPPING, COLLAPSED, ENGINES, FEWEST, HARDLY, HOLDS_WITHIN, WINDOW, Facts

WIDTH = 100
NO_EVIDENCE = "No evidence here"
NO_RULE = f"{NO_EVIDENCE}: no rule applies to what was measured."
DEFINITION = (
    f"Collapse: the first step from which the running median of {WINDOW} logged entropies, more in a noisy run, stays "
    f"at or below {COLLAPSED:.2g} of its first value."
)
LOGGED_BY = {
    "entropy": "TRL and verl log it in every run, OpenRLHF with --actor.entropy_coef 0; export the column too.",
    "clipping": "TRL logs clip_ratio/…, verl actor/pg_clipfrac and actor/ppo_kl, OpenRLHF ppo_clip_ratio and ppo_kl, "
    "llmtrain clip_fraction and ratio/… in every run; export these columns too.",
    "engines": "verl logs it with actor_rollout_ref.rollout.calculate_log_probs=True, OpenRLHF as vllm_kl, llmtrain "
    "with --rollout.name vllm.",
    "pass@k": "verl logs it for each validation set with actor_rollout_ref.rollout.val_kwargs.n=8, llmtrain with "
    "--eval.every.",
}
"""Setting that logs what is missing."""


MOST_CANDIDATES = 3
"""Upper limit for the names that are asked about."""


class Asked(NamedTuple):
    """Metric that can be named by an option."""

    name: str
    option: str


ASKED = {
    "entropy": Asked("entropy", "--entropy"),
    "reward": Asked("reward", "--reward"),
    "mismatch/logp_gap": Asked("difference between engine and trainer", "--gap"),
}


class Section(NamedTuple):
    """Heading with its sentences."""

    title: str
    lines: tuple[str, ...]


def sections(facts: Facts) -> list[Section]:
    """Return what was measured, a section for each question."""
    return [
        Section("In short", _happened(facts)),
        Section("Collapse", _collapse(facts)),
        Section("Off-policyness and clipping", _clipping(facts)),
        Section("Does entropy predict reward?", _law(facts)),
        Section("Does a controller have grip?", _control(facts)),
        Section("Breadth (pass@k)", _breadth(facts)),
    ]


def told(one: Advice) -> Section:
    """Return a piece of advice with its evidence, price, and what would change it; settings apart."""
    rule = one.rule
    if rule.evidence["kind"] == "reported":
        lines = [f"{NO_EVIDENCE}: {rule.source}.", *(f"{line}." for line in one.found.lines)]
        return Section(rule.advice, (*lines, f"What would change the advice: {rule.changes}"))
    if not one.found.supports:
        lines = [f"{NO_EVIDENCE}: {rule.source}."]
        lines += [f"Measured: {line}." for line in one.found.lines]
        return Section(
            f"{NO_EVIDENCE} to “{rule.advice.rstrip('.')}”", (*lines, f"What would change this: {rule.changes}")
        )
    lines = [f"Supported: {one.choice}."] if one.choice else []
    lines += [f"Evidence: {rule.source}."]
    lines += [f"{line}." for line in one.found.lines]
    lines += [f"Price: {rule.price}"] if rule.price else []
    lines += [f"{one.price}."] if one.price else []
    return Section(rule.advice, (*lines, f"What would change the advice: {rule.changes}"))


def text(facts: Facts, picture: str = "") -> str:
    """Return all sections, the advice and its settings as text of at most WIDTH columns, but for settings.

    picture: text to put after the first section.
    """
    first, *others = map(_as_text, sections(facts))
    parts = [first, *([picture] if picture else []), *others]
    parts.append("What to try")
    for one in advise(facts):
        parts.append(_as_text(told(one), "* "))
        parts += [indent(f"{trainer}:\n{indent(settings, '  ')}", "    ") for trainer, settings in one.settings.items()]
    if parts[-1] == "What to try":
        parts.append(f"  {NO_RULE}")
    if any(one.settings for one in advise(facts)):
        parts.append(_as_text(going_on(facts)))
    return "\n".join(parts)


def going_on(facts: Facts) -> Section:
    """Return how a run goes on from one of its checkpoints with settings that are advised."""
    marks = facts.happened.marks
    before = f", one from before step {marks[0][0]} if there is one" if marks else ""
    return Section(
        f"To go on from a checkpoint{before}",
        (
            'TRL: trainer.train(resume_from_checkpoint="FOLDER/checkpoint-N"), with the model and options of the run.',
            "verl: the flags beside those of the run, with trainer.resume_mode=resume_path and "
            "trainer.resume_from_path=FOLDER/global_step_N.",
            "llmtrain: llmtrain export RUN --out MODEL, then the command with --model.path MODEL.",
        ),
    )


def _as_text(section: Section, mark: str = "") -> str:
    lines = [fill(line, WIDTH, initial_indent="  ", subsequent_indent="    ") for line in section.lines]
    return "\n".join([fill(f"{mark}{section.title}", WIDTH, subsequent_indent="  "), *lines])


def _happened(facts: Facts) -> tuple[str, ...]:
    if facts.happened.told:
        lines = [facts.happened.told, *([facts.impossible] if facts.impossible else [])]
    elif facts.incomparable:
        lines = [f"The course of the entropy cannot be told: {facts.incomparable}."]
    elif facts.entropies < LASTS:
        lines = ["Too few entropies are logged to tell."]
    elif facts.happened.first is None and facts.impossible:
        lines = [facts.impossible]
    elif facts.happened.first is None:
        lines = ["The first entropy is not positive, so that it was hardly measured: its course cannot be told."]
    else:
        lines = [facts.impossible] if facts.impossible else []
        lines.append(
            "Nothing of note: no fall to a third of the first entropy, no explosion, no lost number, no dead reward."
        )
    if facts.unmeasured:
        first = f"first {facts.unmeasured} entropies are" if facts.unmeasured > 1 else "first entropy is"
        lines.append(f"The {first} 0 and left out as not measured.")
    if facts.happened.read:
        lines.append(f"Read from {', '.join(facts.happened.read)}.")
    for ours, found in facts.candidates.items():
        told = " or ".join(f"“{name}”" for name in found[:MOST_CANDIDATES])
        if len(found) > MOST_CANDIDATES:
            told += f" or one of {len(found) - MOST_CANDIDATES} others"
        name, option = ASKED[ours]
        lines.append(f"No {name} is logged under a known name: is {told} it? {option} {quote(found[0])}")
    return tuple(lines)


def _collapse(facts: Facts) -> tuple[str, ...]:
    if facts.incomparable:
        return (f"Cannot be told: {facts.incomparable}.",)
    if not facts.entropies and "entropy" in facts.candidates:
        return ("Cannot be told until the entropy is known.",)
    if not facts.entropies:
        return (f"No entropy is logged. {LOGGED_BY['entropy']}",)
    if facts.entropy is None:
        few = facts.entropies < FEWEST
        reason = f"{FEWEST} entropies are needed, {facts.entropies} are logged" if few else "the first are not positive"
        return (f"Cannot be told: {reason}.",)
    one = facts.entropy
    late = f"over the last third its mean is {one.late:.3g} ({one.low:.3g} to {one.high:.3g})"
    course = f"The entropy starts at {one.start:.3g} nats; {late}."
    none = "Not collapsed at the end." if facts.happened.fell else "No collapse."
    if facts.happened.exploded:
        none = "Not collapsed at the end: it exploded."
    if facts.happened.peaked and not facts.happened.fell:
        none = "No collapse by its first value: it fell from a peak, and not to a third of where it began."
    if "entropy" in facts.happened.lost:
        none = f"Cannot be told: the entropy is not a number from step {facts.happened.lost['entropy']}."
    if "entropy" in facts.happened.ended:
        step = facts.happened.ended["entropy"]
        none = f"Cannot be told: the entropy is not logged from step {step} of {facts.happened.steps}."
    found = none if one.collapse is None else f"Collapsed at step {one.collapse}."
    return (found, course, DEFINITION)


def _clipping(facts: Facts) -> tuple[str, ...]:
    lines = []
    for names, missing, what in (
        (CLIPPING, "clipping", "No ratio and no clip fraction"),
        (ENGINES, "engines", "No mismatch between rollout engine and trainer"),
    ):
        there = {name: facts.clipping[name] for name in names if name in facts.clipping}
        if not there and missing == "engines" and "mismatch/logp_gap" in facts.candidates:
            continue
        if not there:
            lines.append(f"{what} is logged. {LOGGED_BY[missing]}")
        else:
            parts = (f"{name} {one.late:.3g} (at most {one.most:.3g})" for name, one in there.items())
            lines.append(f"Means over the last third: {', '.join(parts)}.")
    if facts.clipped is not None and facts.clipped < HARDLY:
        lines.append(f"Hardly any token is clipped from above (less than {HARDLY:g} of them).")
    return tuple(lines)


def _law(facts: Facts) -> tuple[str, ...]:
    if facts.law is None:
        return (f"Cannot be told: {facts.no_law}.",)
    law, (low, high), (least, most) = facts.law.law, facts.law.law.a_interval, facts.law.law.ceiling_interval
    under, over = facts.law.gain_interval
    alike = "" if under > 0 or over < 0 else ": they cannot be told apart"
    shown = "Entropy predicts reward in this run." if facts.law.predicts else "Not shown by this run."
    return (
        shown,
        f"R = −a·e^H + b with a = {law.a:.3g} (95% interval {low:.3g} to {high:.3g}), ceiling b − a = "
        f"{law.ceiling:.3f} ({least:.3f} to {most:.3f}), R² {law.r2:.2f}.",
        f"Null: a parabola in the step. The law's R² exceeds it by {facts.law.gain:.3f} (95% interval {under:.3f} to "
        f"{over:.3f}){alike}. Entropy predicts reward if this and a are above 0 beyond their intervals.",
        *facts.law.doubts,
    )


def _control(facts: Facts) -> tuple[str, ...]:
    control, lines = facts.control, []
    if facts.controller:
        lines.append(f"Controller: {facts.controller}.")
    if control.target is None:
        lines.append(
            "It has no target." if facts.controller else "The log names no target; if the run has one, give it."
        )
    elif control.held is None:
        lines.append(f"Target {control.target:.3g} nats; without an entropy the distance from it cannot be told.")
    else:
        verdict = "has grip" if control.held else "has no grip"
        lines.append(
            f"The controller {verdict}: over the last third the mean entropy is {control.error:+.3g} nats from its "
            f"target of {control.target:.3g} (grip: within {HOLDS_WITHIN:.0%})."
        )
    for name, level in control.coefficients.items():
        at = (
            f"at its bound, {control.pinned[name]:.3g}"
            if name in control.pinned
            else f"{level.late:.3g} on average, not at a bound"
        )
        lines.append(f"{name} over the last third: {at}.")
    return tuple(lines)


def _breadth(facts: Facts) -> tuple[str, ...]:
    one = facts.breadth
    if one is None:
        return (f"Not logged twice. {LOGGED_BY['pass@k']}",)
    course = f"{one.metric} goes from {one.first:.3f} at step {one.steps[0]} to {one.last:.3f} at step {one.steps[1]}"
    if one.intervals is None:
        return (f"{course}; no intervals are logged, so a difference cannot be told from noise.",)
    (a, b), (c, d) = one.intervals
    verdict = "It fell." if one.fell else "It rose." if c > b else "They cannot be told apart."
    return (f"{course}, 95% intervals {a:.3f} to {b:.3f} and {c:.3f} to {d:.3f}. {verdict}",)
