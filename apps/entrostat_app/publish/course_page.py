"""The course as parts of a page: a lesson each, with the runs at every position of its slider simulated beforehand."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import entrostat

from ..shared import bandit
from ..shared.trial_words import told
from ..views.learn import learn, linked_words
from ..views.learn.lessons import LESSONS, NEITHER, SEEDS, Lesson, last_entropy, margin
from .curve_data import coloured, legend, panel
from .playground_page import SLIDERS, slider
from .playground_page import bandit as problem
from .whole_page import Section, as_json

POINTS = 54
"""Upper limit for the points of a line."""
PLAIN = ("grpo", "clip_higher")
"""Controllers that playground.js knows: the ratio is clipped, and nothing else."""
LIVE = ("passes", "lr")
"""Settings with a slider of their own in a playable lesson."""
END = "own-log"
"""Id of the part after the last lesson."""


def entries(lesson: Lesson) -> Iterator[dict[str, Any]]:
    """Yield what the page shows at each position of the lesson's slider."""
    for value, runs in zip(lesson.positions, lesson.simulate_all(), strict=True):
        panels = [panel(one, lesson.names, POINTS) for one in learn.panels(runs, lesson.pass_k)]
        panels[-1]["x_title"] = "rollout"
        right, verdict = lesson.right(runs), lesson.verdict(runs)
        yield {"value": told(value), "right": right, "verdict": verdict, "panels": panels}


def playable(lesson: Lesson) -> bool:
    """Return True if the page can simulate the lesson itself: clipped GRPO alone, judged by its last entropy."""
    configs = map(bandit.config_at, lesson.runs(lesson.move.default).values())
    return lesson.measure is last_entropy and all(config.controller in PLAIN for config in configs)


def live(lesson: Lesson) -> dict[str, Any]:
    """Return what live.js needs to simulate a playable lesson: bandits, and settings of each run at each position."""
    config = bandit.config_at(next(iter(lesson.runs(lesson.move.default).values())))
    moved = [[_settings(run) for run in lesson.runs(value).values()] for value in lesson.positions]
    return {
        "bandits": [problem(config, seed) for seed in SEEDS],
        "runs": moved[0],
        "moved": [[run["eps_high"] for run in runs] for runs in moved],
        "names": lesson.names,
        "measured": lesson.measured,
        "neither": NEITHER,
        "margin": margin(len(SEEDS)),
        "titles": [one.title for one in learn.panels(lesson.simulate(lesson.move.default))],
    }


def _settings(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the settings of `simulate` of playground.js."""
    config = bandit.config_at(values)
    known = entrostat.describe(config.controller)["hyperparameters"]
    clip = {key: config.controller_args.get(key, known[key]["default"]) for key in ("eps_low", "eps_high")}
    return {**clip, **{key: getattr(config, key) for key in ("lr", "passes", "group", "rollouts")}}


def name(number: int) -> str:
    """Return the id of a lesson, or of the end."""
    return f"lesson-{number}" if number <= len(LESSONS) else END


def section(number: int, found: list[dict[str, Any]]) -> Section:
    """Return the part of a lesson. number: from 1; found: its entries."""
    lesson = LESSONS[number - 1]
    return Section(
        name=name(number),
        title=f"{number}. {lesson.title}",
        html=_html(number, lesson, found),
        scripts=("page.js", "curves.js", "playground.js", "live.js", "course.js"),
        told=f"{name(number)} at {len(found)} values",
    )


def _html(number: int, lesson: Lesson, found: list[dict[str, Any]]) -> str:
    this, move = name(number), lesson.move
    at = lesson.positions.index(move.default)
    value = f"{found[at]['value']} {move.unit}".strip()
    choices = "".join(
        f'<label><input type="radio" name="{this}" value="{escape(choice)}" autocomplete="off">{escape(choice)}</label>'
        for choice in lesson.choices
    )
    held = any("target" in str(line["style"]) for line in found[at]["panels"][0]["series"])
    stage = "".join(
        f'<svg role="img" class="curves" data-panel="{which}"></svg>'
        for which, _ in zip(linked_words.PANELS, found[at]["panels"], strict=False)
    )
    names = [*lesson.names, *([learn.TARGET] if held else [])]
    papers = "; ".join(f'<a href="{escape(s.address)}">{escape(s.name)}</a>' for s in lesson.sources)
    label = f"{move.label}, {move.symbol}" if move.symbol else move.label
    before = f'<a href="#{name(number - 1)}">Back</a>' if number > 1 else ""
    data: dict[str, Any] = {"unit": move.unit, "entries": found}
    sliders = ""
    if playable(lesson):
        data = {"unit": move.unit, "entries": [{"value": e["value"]} for e in found], "live": live(lesson)}
        sliders = "".join(slider(this, data["live"]["runs"][0], *each) for each in SLIDERS if each[0] in LIVE)
    return f"""<section id="{this}" class="lesson">
<h1>{number}. {escape(lesson.title)}</h1>
<p class="words">{linked_words.html(lesson.setting)}</p>
<fieldset><legend>Predict: {escape(lesson.question)}</legend>{choices}</fieldset>
{coloured(this, names)}{legend(names)}
<div class="stage">{stage}</div>
<div class="control">
<label for="{this}.slider">{escape(label)}</label>
<span class="value" aria-hidden="true">{escape(value)}</span>
<input type="range" id="{this}.slider" min="0" max="{len(found) - 1}" step="1" value="{at}"
aria-valuetext="{escape(value)}" autocomplete="off">
</div>
<details class="verdict"><summary>Answer</summary>
<p class="answer" role="status" aria-live="polite">{escape(found[at]["verdict"])}</p>
<p>{linked_words.html(lesson.why)}</p>
<p>In the papers: {papers}</p>
</details>
<div class="more">
<p>{linked_words.html(lesson.text)}</p>
<p>{escape(move.help)}</p>
{f"<p>Try it: {escape(lesson.next)}</p>{sliders}" if sliders else ""}
</div>
<p class="ways">{before} <a href="#{name(number + 1)}">Next</a></p>
<script type="application/json">{as_json(data)}</script>
</section>"""


def end() -> Section:
    """Return the part after the last lesson, which leads to one's own log."""
    html = f"""<section id="{END}">
<h1>Now on your own log</h1>
<p>Logs of TRL, verl, OpenRLHF, W&amp;B and TensorBoard are read as they are. The first command says when entropy
collapsed, what to try and which settings to paste; the second shows the log in a browser, on its page Runs.</p>
<pre><code>llmtrain diagnose trainer_state.json
entrostat-app --runs FOLDER</code></pre>
<p class="ways"><a href="#{name(len(LESSONS))}">Back</a> <a href="#{name(1)}">To the first lesson</a></p>
</section>"""
    return Section(name=END, title="Now on your own log", html=html, scripts=(), told="")
