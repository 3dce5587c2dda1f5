"""The playground as a part of a page: `toybandit.picture`, GRPO beside a controller, simulated by the page itself."""

from collections.abc import Mapping
from html import escape
from typing import Any

import torch

import entrostat
from entrostat.about.colours import colour_of
from entrostat.controllers import thermostat
from entrostat.numbers import plant
from entrostat.numbers.draws import salt
from toybandit import Config, picture
from toybandit.problem import draw_problem
from toybandit.uncertainty import FACTOR

from .whole_page import Section, as_json

NAME = "playground"
CLIP = 0.2
"""Clip bounds of GRPO."""
SLIDERS = (
    ("eps_high", "Upper clip bound, ε_high", 0.0, 1.0, 0.02),
    ("lr", "Learning rate, η", 0.1, 4.0, 0.1),
    ("passes", "Updates per rollout, M", 1, 16, 1),
    ("group", "Group size, G", 2, 64, 2),
)
"""Name, label, limits and step of each slider below the first screen."""
RULES = {
    picture.HELD: ("target", "Target entropy (nats)", 0.0, picture.HIGHEST, picture.STEP, picture.TARGET),
    "entropy_bonus": ("coef", "Coefficient of the bonus", 0.0, 0.3, 0.01, 0.05),
    "clip_higher": ("eps_high", "Upper clip bound, ε_high", 0.2, 1.0, 0.02, 0.28),
}
"""Controllers to choose from: name, label, limits, step and first value of the setting that the main slider moves."""
SOLVED = ("k", "rate", "bonus_max", "kappa", "integral", "forgetting")
"""Settings of the thermostat that keep their defaults."""
PLANT = (
    "FALL", "RISE", "PRIOR_SPREAD", "LIVE_SPREAD", "SURPRISE", "MEMORY", "TRUST", "LEAST_TRUST", "MOST_TRUST",
    "OUTLIER", "TRUST_RATE",
)  # fmt: skip
"""Constants of its estimate."""
ASK = "Choose an answer. The runs are drawn then."


def bandit(config: Config, seed: int) -> dict[str, Any]:
    """Return what the page's simulator needs of a configuration: initial logits, reward probabilities, random keys."""
    logits, success = draw_problem(config.environment(), torch.tensor([seed]), torch.float64)
    salts = [salt("arm"), salt("reward")]
    return {"seed": seed, "salts": salts, "logits": logits[0].tolist(), "success": success[0].tolist()}


def held() -> dict[str, Any]:
    """Return the settings of the page's thermostat without its target."""
    known = entrostat.describe("thermostat")["hyperparameters"]
    constants = {name: getattr(plant, name) for name in PLANT}
    constants |= {name: getattr(thermostat, name) for name in ("IDLE", "PATIENCE")}
    return {**{name: known[name]["default"] for name in SOLVED}, "constants": constants}


def settings() -> dict[str, Any]:
    """Return the settings of `simulate` of playground.js for GRPO in the picture."""
    config = picture.config(picture.PLAIN)
    numbers = {name: getattr(config.environment(), name) for name in ("lr", "passes", "group", "rollouts")}
    return {"eps_high": CLIP, "eps_low": CLIP, **numbers, "k": picture.K}


def data() -> dict[str, Any]:
    """Return what playground_picture.js draws and moves."""
    rules = {
        name: dict(zip(("key", "label", "low", "high", "step", "value"), rule, strict=True))
        for name, rule in RULES.items()
    }
    rules[picture.HELD]["held"] = held()
    return {
        "bandits": [bandit(picture.config(picture.PLAIN), seed) for seed in picture.SEEDS],
        "settings": settings(),
        "rules": rules,
        "colours": {name: colour_of(name) for name in (picture.PLAIN, *RULES)},
        "panels": [
            {"what": "entropy", "title": "Entropy (nats)", "top": picture.TOP},
            {"what": "passed", "title": f"pass@{picture.K}", "top": 1},
            {"what": "reward", "title": "Expected reward", "top": 1},
        ],
        "plain": picture.PLAIN,
        "neither": picture.NEITHER,
        "order": picture.ORDER,
        "pays": picture.PAYS,
        "factor": FACTOR,
    }


def section() -> Section:
    """Return the part of the page: prediction, pictures, sliders, result, and the bandits for the script."""
    scripts = ("page.js", "playground.js", "playground_picture.js")
    return Section(name=NAME, title=NAME, html=_html(), scripts=scripts, told=NAME)


def _html() -> str:
    numbers = data()
    choices = "".join(
        f'<label><input type="radio" name="{NAME}.guess" value="{value}" autocomplete="off">'
        f"<span>{escape(name)}</span></label>"
        for value, name in zip((0, 1, -1), picture.CHOICES, strict=True)
    )
    rules = "".join(f"<option>{escape(name)}</option>" for name in RULES)
    _, label, low, high, step, value = RULES[picture.HELD]
    curves = '<svg role="img" class="curves"></svg>'
    return f"""<section id="{NAME}" class="{NAME}">
<h1>{escape(picture.TITLE)}</h1>
<p class="words">{escape(picture.SETTING)}</p>
<fieldset><legend>Predict: {escape(picture.QUESTION)}</legend>{choices}</fieldset>
<div class="stage">
{2 * curves}
{2 * '<svg role="img" class="policy"></svg>'}
</div>
{slider(NAME, {"main": value}, "main", label, low, high, step)}
<div class="verdict" role="status" aria-live="polite">{ASK}</div>
<details class="more"><summary>Reward, and other controllers</summary>
{curves}
<div class="choice"><label for="{NAME}.rule">Controller beside {picture.PLAIN}</label>
<select id="{NAME}.rule" autocomplete="off">{rules}</select></div>
{"".join(slider(NAME, numbers["settings"], *each) for each in SLIDERS)}
</details>
<p class="source">Mean of {len(picture.SEEDS)} seeds, band from the lowest to the highest. The page simulates every
rollout itself, with the random numbers of toybandit, on the environment trap.</p>
<script type="application/json">{as_json(numbers)}</script>
</section>"""


def slider(part: str, settings: Mapping[str, Any], key: str, label: str, low: float, high: float, step: float) -> str:
    """Return a slider with its label and value in a part of the page; its name is the setting's."""
    start = f"{settings[key]:g}"
    return f"""<div class="control">
<label for="{part}.{key}">{escape(label)}</label>
<span class="value" aria-hidden="true">{start}</span>
<input type="range" id="{part}.{key}" name="{key}" min="{low:g}" max="{high:g}" step="{step:g}" value="{start}"
autocomplete="off">
</div>
"""
