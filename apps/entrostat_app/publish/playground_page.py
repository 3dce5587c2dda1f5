"""The playground as a part of a page: plain GRPO on the trap, simulated by the page itself."""

from collections.abc import Mapping
from html import escape
from typing import Any

import torch

from entrostat.numbers.draws import salt
from toybandit import Config
from toybandit.problem import draw_problem

from .whole_page import Section, as_json

NAME = "playground"
SETTINGS = {"eps_high": 0.2, "eps_low": 0.2, "lr": 1.0, "passes": 4, "group": 16, "rollouts": 100}
"""First values; what has no slider stays."""
SLIDERS = (
    ("eps_high", "Upper clip bound, ε_high", 0.0, 1.0, 0.02),
    ("lr", "Learning rate, η", 0.1, 4.0, 0.1),
    ("passes", "Updates per rollout, M", 1, 16, 1),
    ("group", "Group size, G", 2, 64, 2),
)
"""Name, label, limits and step of each slider."""


def bandit(config: Config, seed: int) -> dict[str, Any]:
    """Return what the page's simulator needs of a configuration: initial logits, reward probabilities, random keys."""
    logits, success = draw_problem(config.environment(), torch.tensor([seed]), torch.float64)
    salts = [salt("arm"), salt("reward")]
    return {"seed": seed, "salts": salts, "logits": logits[0].tolist(), "success": success[0].tolist()}


def section() -> Section:
    """Return the part of the page: picture, sliders, result, and the bandit for the script."""
    return Section(name=NAME, title=NAME, html=_html(), scripts=("page.js", "playground.js"), told=NAME)


def _html() -> str:
    first, *others = (slider(NAME, SETTINGS, *each) for each in SLIDERS)
    data = {"bandit": bandit(Config(env="trap"), 0), "settings": SETTINGS}
    return f"""<section id="{NAME}" class="{NAME}">
<h1>Entropy collapse</h1>
<p class="words">GRPO on 16 prompts whose likeliest answer pays half of the time; a rare one always pays.</p>
<svg role="img" viewBox="0 0 400 240"></svg>
{first}
<div class="verdict" role="status" aria-live="polite"></div>
{"".join(others)}
<div class="more">
<p>The page simulates every rollout itself, with the random numbers of toybandit: env trap, seed 0.</p>
</div>
<script type="application/json">{as_json(data)}</script>
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
