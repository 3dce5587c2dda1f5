"""Who takes part when all controllers are compared: each with the values of its preset, and some with others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .by_name import has_target, make
from .registry import REGISTRY

LEFT_OUT = "rollout_correction"
"""Corrects for rollouts of another policy, of which there are none where everything is compared."""


@dataclass(frozen=True)
class Entry:
    """A controller with the values it takes part with."""

    controller: str
    args: Mapping[str, Any] = field(default_factory=dict)
    """Other than the values of the preset `paper`."""
    open_loop: bool = False
    """Whether these values leave the controller's target unused."""

    @property
    def setting(self) -> str:
        """The values that are not the preset's, as text."""
        return ", ".join(f"{key}={value}" for key, value in self.args.items())

    @property
    def name(self) -> str:
        return f"{self.controller} ({self.setting})" if self.args else self.controller

    @property
    def has_target(self) -> bool:
        return has_target(self.controller) and not self.open_loop

    @property
    def per_response(self) -> bool:
        """Whether its rule looks at whole responses."""
        return not make(self.controller, **self.args).needs.isdisjoint(("seq_id", "position"))


SUITED = (
    Entry("adaptive_entropy", {"delta": 0.005, "coef_max": 0.1}),
    Entry("clip_cov", {"k": 0.02}),
    Entry("entropic", {"tau": 0.5, "ki": 0.05}),
    Entry("entropic", {"auto": True}),
    Entry("entropy_bonus", {"coef": 0.05}),
    Entry("kl_cov", {"k": 0.02}),
    Entry("kl_ref", {"beta": 0.05}),
    Entry("opefo", {"estimator": "exact"}),
    Entry("positive_reweight", {"variant": "stage"}, open_loop=True),
    Entry("random_positive_clip", {"k": 0.02}),
    Entry("steer", {"estimator": "exact"}),
    Entry("thermostat", {"mode": "both"}),
    Entry("thermostat", {"mode": "reweight"}),
)
"""Rates and shares that act within 300 rollouts and mini-batches of 1,024 tokens, and the variants of a rule."""


def entries() -> list[Entry]:
    """All of them but `LEFT_OUT`, GRPO's own surrogate first and then by name."""
    preset = [Entry(name) for name in REGISTRY if name != LEFT_OUT]
    return sorted((*preset, *SUITED), key=lambda entry: (entry.controller != "ppo", entry.controller))
