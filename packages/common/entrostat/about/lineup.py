"""Entries of a comparison: controllers with the values of their presets, some also with others, and advantages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ..advantages import REGISTRY as OBJECTIVES
from ..advantages import advantage_needs
from ..by_name import has_target, make, names_of
from ..registry import ALIASES, REGISTRY
from ..settings.commandline import parse_settings
from ..settings.schedules import split

LEFT_OUT = "rollout_correction"
"""Controller that is left out: it corrects for rollouts of another policy, which comparisons do not have."""


@dataclass(frozen=True)
class Entry:
    """Controller of a comparison with its settings, or another advantage than that of all others."""

    controller: str
    args: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ from the preset `paper`."""
    open_loop: bool = False
    """True if these settings leave the controller's target unused."""
    advantage: str | None = None
    """Advantage of this entry; None for that of the comparison."""

    @property
    def setting(self) -> str:
        """Settings that differ from the preset, as text."""
        given = {"advantage": self.advantage} if self.advantage else {}
        return ", ".join(f"{key}={value}" for key, value in {**given, **self.args}.items())

    @property
    def name(self) -> str:
        return f"{self.controller} ({self.setting})" if self.setting else self.controller

    @property
    def drawn_as(self) -> str:
        """Name in pictures, where an advantage with GRPO's own surrogate stands for itself."""
        alone = self.advantage and self.controller == "ppo" and not self.args
        return f"{self.advantage.partition(' ')[0]} (advantage)" if self.advantage and alone else self.name

    @property
    def has_target(self) -> bool:
        return has_target(self.controller) and not self.open_loop

    @property
    def per_response(self) -> bool:
        """True if its rule needs whole responses."""
        return not make(self.controller, **self.args).needs.isdisjoint(("seq_id", "position"))


SUITED = (
    Entry("adaptive_clip", {"eps": 0.2, "delta": 0.05}),
    Entry("adaptive_entropy", {"delta": 0.005, "coef_max": 0.1}),
    Entry("aer", {"delta": 0.005, "coef_max": 0.1}),
    Entry("arbitrary_entropy", {"temperature_high": 2.0, "temperature_low": 0.5, "gap_max": 1.0}),
    Entry("bapo", {"share": 0.55}),
    Entry("clip_cov", {"k": 0.02}),
    Entry("clip_v", {"mu": 2.0, "k": 0.02}),
    Entry("entropic", {"tau": 0.5, "ki": 0.05}),
    Entry("entropic", {"auto": True}),
    Entry("entropy_bonus", {"coef": 0.05}),
    Entry("epo", {"coef": 0.05, "form": "linear", "penalty": 2.0}),
    Entry("flexible_clip", {"variant": "wide_upper"}),
    Entry("kl_cov", {"k": 0.02}),
    Entry("kl_ref", {"beta": 0.05}),
    Entry("lp_reg", {"share": 0.1}),
    Entry("opefo", {"estimator": "exact"}),
    Entry("papo", {"estimator": "sampled"}),
    Entry("positive_reweight", {"variant": "stage"}, open_loop=True),
    Entry("random_positive_clip", {"k": 0.02}),
    Entry("repo_r", {"zeta_max": 1.0}),
    Entry("siren", {"beta": 0.5, "per_response": False}),
    Entry("stare", {"both_signs": True, "delta": 0.01}),
    Entry("steer", {"estimator": "exact"}),
    Entry("temperature_loop", {"vocabulary": 16}),
    Entry("thermostat", {"mode": "both"}),
    Entry("thermostat", {"mode": "reweight"}),
    Entry("thermostat", {"mode": "temperature"}),
)
"""Entries with rates and shares that act within 300 rollouts and mini-batches of 1,024 tokens, and rule variants."""

ADVANTAGES = tuple(
    Entry("ppo", advantage=name)
    for name in ("gdpo", "max_rl", "optimal_token", "pass_at_k k=4 variant=analytic", "rae", "remax")
)
"""Entries that differ from GRPO in the advantage alone."""
ALONE = {"gdpo": "one reward: that of GRPO, whitened over the batch", "rae": "one source: one running mean for all"}
"""Meaning of an advantage where a verdict is the only reward and all prompts have one source."""


def entries() -> list[Entry]:
    """Return all controllers except `LEFT_OUT`, GRPO's own surrogate first and then by name."""
    preset = [Entry(name) for name in REGISTRY if name != LEFT_OUT]
    return sorted((*preset, *SUITED), key=lambda entry: (entry.controller != "ppo", entry.controller))


def asked(items: Sequence[str]) -> list[Entry]:
    """Return the requested entries, each once.

    `steer` gives all entries of that controller, or the controller itself if it has none. `kl_ref beta=0.02,0.05` gives
    that controller with each of these values; several hyperparameters give all combinations of their values. What names
    an advantage, such as `pass_at_k k=4`, is GRPO's own surrogate with it.
    Raises a one-line ValueError that begins with the item if an entry cannot be made.
    """
    found: dict[str, Entry] = {}
    for item in items:
        try:
            found |= {entry.name: entry for entry in _of(item)}
        except ValueError as error:
            raise ValueError(f"{item}: {error}") from None
    return list(found.values())


def _of(item: str) -> list[Entry]:
    name, _, settings = item.strip().partition(" ")
    if name in OBJECTIVES and name not in (*REGISTRY, *ALIASES):
        advantage_needs(item.strip())  # raises if it has no such hyperparameter
        return [Entry("ppo", advantage=item.strip())]
    # What lies at module:Class keeps that name: a run's own process would know no other.
    controller = "+".join(x if ":" in x else known for x, known in zip(name.split("+"), names_of(name), strict=True))
    own = [entry for entry in entries() if entry.controller == controller]
    if own and not settings:
        return own
    pairs = [word.partition("=") for word in filter(None, split(settings))]
    choices = [[f"{key}{equals}{value}" for value in split(values, ",")] for key, equals, values in pairs]
    made = [Entry(controller, parse_settings(chosen)) for chosen in product(*choices)]
    for entry in made:
        make(controller, **entry.args)
    return [next((e for e in own if e.args == entry.args), entry) for entry in made]
