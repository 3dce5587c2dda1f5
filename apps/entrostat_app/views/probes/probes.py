"""Probes: two runs, or two steps of one run, token by token from where their answers part."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from ...shared import charts, exports, run_folder, tokens_html
from ...shared.controls import Control
from ...shared.plain_text import plain
from ...shared.room import room
from . import answers, branches
from .answers import Name, Step

HOW_TO = """llmtrain train --preset countdown-cpu --log.probes 8 --log.probe-every 10 --out runs/grpo
llmtrain train --preset countdown-cpu --log.probes 8 --log.probe-every 10 --out runs/steer --controller steer"""
SAME, FIRST, LAST = "the same", "the first", "the last"
DRAWN, BEFORE = 600, 150
"""Tokens drawn of an answer, so that a redraw stays quick, and how many of them are before the parting."""
SHADES = ("entropy", "weight", "advantage")
SHADE = Control(
    key="probes.colour",
    label="Shade tokens by",
    default="entropy",
    options=SHADES,
    help="entropy: entropy of the policy at the token. weight: factor of the controller on its advantage, in a plan "
    "over the probes alone. advantage: that in its group, after the controller's changes. One scale for both.",
)


def page() -> None:
    """Draw the choice of runs in the sidebar, the step, the two answers, and the fate of their branches."""
    st.title("Probes")
    st.caption(
        "Fixed questions that runs answer every few steps, always with the same random numbers: two answers are the "
        "same up to the token where the policies first draw differently."
    )
    root = run_folder.folder()
    try:
        known = answers.with_probes(root, run_folder.recent(root, run_folder.names(root)))
    except ValueError as error:
        st.error(plain(str(error)))
        return
    if not known:
        st.info("No run here has answers to probes. These commands make two; then reload this page.")
        st.code(HOW_TO, language="shell", wrap_lines=True)
        st.caption("Runs are read from this folder; `entrostat-app --runs FOLDER` chooses another:")
        st.code(str(root), language=None, wrap_lines=True)
        return
    try:
        draw(root, known)
    except (ValueError, OSError) as error:
        st.error(plain(str(error) if isinstance(error, ValueError) else f"{error.strerror}: reload the page"))


def draw(root: Path, known: Sequence[str]) -> None:
    """Draw the comparison of two chosen answers. Raises ValueError if a file cannot be read."""
    with st.sidebar:
        names = [one_run("A", known, known[0]), one_run("B", known, known[min(1, len(known) - 1)])]
        against = Control(
            key="probes.against",
            label="Step of B",
            default=SAME if names[0] != names[1] else FIRST,
            options=(SAME, FIRST, LAST),
            help="Step of run B: that of the slider, its first or its last one.",
        ).draw()
    known_steps = [answers.steps(root, name) for name in names]
    steps = chosen_steps(known_steps, against)
    found = [known[step] for known, step in zip(known_steps, steps, strict=True)]
    with st.sidebar:
        name = chosen_answer(found)
        shade = SHADE.draw()
    if any(name not in side for side in found):
        st.info("One of the runs has no such answer at this step: choose another answer, question or step.")
        return
    one, other = (answers.answer(root, names[i], steps[i], found[i][name]) for i in range(2))
    if one.get("prompt") != other.get("prompt"):
        st.warning("The runs have different questions here: choose runs of one task.", icon=":material/warning:")
        return
    st.caption("Question")
    st.html(tokens_html.region(tokens_html.escaped(one.get("prompt", "")), "Question"))
    at = branches.parting(one["tokens"], other["tokens"])
    draw_answers(names, steps, [one, other], shade, at)
    if at is None:
        st.info(f"The two answers are the same: {len(one['tokens'])} tokens.", icon=":material/visibility:")
    draw_branches(names, steps, known_steps, name, (one["tokens"], other["tokens"]), at)
    st.caption("All answers at these steps")
    st.dataframe(table(found), hide_index=True, placeholder="–", key="probes.table")


def one_run(side: str, known: Sequence[str], first: str) -> str:
    """Draw the choice of a run; return its name."""
    found: str = Control(
        key=f"probes.{side.lower()}",
        label=f"Run {side}",
        default=first,
        options=tuple(known),
        help="Runs with answers to probes. The same run twice compares two of its steps.",
    ).draw()
    return found


def chosen_steps(known_steps: Sequence[Mapping[int, Step]], against: str) -> list[int]:
    """Draw the step slider; return the steps of A and B: the last ones at or before it, or B's first or last."""
    one, other = (list(found) for found in known_steps)
    step = one[-1]
    if len(one) > 1:
        apart = gcd(*(b - a for a, b in pairwise(one)))
        control = Control(
            key="probes.step",
            label="Step",
            default=one[-1],
            low=one[0],
            high=one[-1],
            step=apart,
            help="Rollout step. The answers are of the policy before the updates of that step.",
        )
        if not one[0] <= st.session_state.get(control.key, step) <= one[-1]:
            st.session_state[control.key] = one[-1]
        step = control.draw()
    mine, theirs = ([at for at in known if at <= step] or known[:1] for known in (one, other))
    return [mine[-1], {SAME: theirs[-1], FIRST: other[0], LAST: other[-1]}[against]]


def chosen_answer(found: Sequence[Step]) -> Name:
    """Draw the choice of question and answer; return them."""
    names = sorted({name for side in found for name in side})
    probes = sorted({name.probe for name in names})
    probe = Control(
        key="probes.question",
        label="Question",
        default=str(probes[0] + 1),
        options=tuple(str(probe + 1) for probe in probes),
        help="Number of the probe.",
    ).draw()
    samples = [name.sample for name in names if name.probe == int(probe) - 1]
    sample = Control(
        key="probes.answer",
        label="Answer",
        default=str(samples[0] + 1),
        options=tuple(str(sample + 1) for sample in samples),
        help="Number of the answer to this question. Answers with the same number have the same random numbers.",
    ).draw()
    return Name(int(probe) - 1, int(sample) - 1)


def draw_answers(
    names: Sequence[str], steps: Sequence[int], pair: Sequence[Mapping[str, Any]], shade: str, at: int | None
) -> None:
    """Draw two answers side by side with a sign where they part, and one scale of shades for both."""
    scale = tokens_html.SCALES[shade]
    values = [value for answer in pair for value in tokens_html.column(answer, scale.key) or []]
    both = {"tokens": [""] * len(values), scale.key: values}
    if values:
        st.html(tokens_html.legend(both, shade))
    longest = max(len(answer["tokens"]) for answer in pair)
    start = max(min(at or 0, longest - DRAWN + BEFORE) - BEFORE, 0)
    for side, column in enumerate(st.columns(2, gap="medium")):
        with column:
            answer, label = pair[side], "AB"[side]
            reward = answer.get("reward")
            earned = f", reward {reward:g}" if isinstance(reward, int | float) else ""
            count = len(answer["tokens"])
            st.markdown(f"**{label}: {plain(names[side])}**, step {steps[side]}{earned}, {count:,} tokens")
            most, mark = tokens_html.reach(values, scale), None if at is None else at - start
            shown = tokens_html.response(_part(answer, start), shade, label=f"Answer of {label}", most=most, mark=mark)
            st.html(shown)
    said = f"The answers part at token {at + 1}, after “{tokens_html.MARK}”. " if at is not None else ""
    cut = f"Tokens {start + 1:,} to {start + DRAWN:,} are drawn, of up to {longest:,}. " if longest > DRAWN else ""
    st.caption(f"{said}{cut}Hover over a token for its numbers.")


def _part(answer: Mapping[str, Any], start: int) -> dict[str, Any]:
    """Return an answer with DRAWN of its tokens."""
    return {key: value[start : start + DRAWN] if isinstance(value, list) else value for key, value in answer.items()}


def draw_branches(
    names: Sequence[str],
    steps: Sequence[int],
    known_steps: Sequence[Mapping[int, Step]],
    name: Name,
    pair: tuple[Sequence[str], Sequence[str]],
    at: int | None,
) -> None:
    """Draw how many answers of each run take each branch over steps, and what became of it."""
    found = branches.branches(*pair, at if at is not None else max(len(pair[0]) - 1, 0))
    sides = found if at is not None else found[:1]
    runs = [0, 1] if names[0] != names[1] else [0]
    lines, said = {}, []
    for branch in sides:
        text = tokens_html.visible(branch.token)
        for run in runs:
            where = f" in run {'AB'[run]}" if len(runs) > 1 else ""
            label = f"{branch.side if at is not None else 'this answer'}{where}"
            counts = branches.shares(known_steps[run], name.probe, branch)
            lines[label] = counts
            about = f"branch {label}" if at is not None else label
            said.append(f"{about}, “{text}”: {branches.fate(counts, steps[run] if len(runs) > 1 else steps[0])}.")
    drawn = branches.picture(lines, steps[0])
    left, right = st.columns([3, 2], gap="medium")
    with left, room("branches", branches.HEIGHT):
        charts.show(drawn, key="probes.branches")
    with right:
        st.info(plain("\n\n".join(said)), icon=":material/call_split:")
    exports.draw(drawn, "probes", [])


def table(found: Sequence[Step]) -> pd.DataFrame:
    """Return a row for each answer that both sides have: rewards, and where and how they part."""
    rows = []
    for name in sorted(set(found[0]) & set(found[1])):
        one, other = (side[name] for side in found)
        at = branches.parting(one.tokens, other.tokens)
        pair = branches.branches(one.tokens, other.tokens, at) if at is not None else None
        rows.append({
            "question": name.probe + 1,
            "answer": name.sample + 1,
            "parts at token": None if at is None else at + 1,
            "A goes on with": tokens_html.visible(pair[0].token) if pair else "",
            "B goes on with": tokens_html.visible(pair[1].token) if pair else "",
            "reward of A": one.reward,
            "reward of B": other.reward,
        })  # fmt: skip
    return pd.DataFrame(rows)
