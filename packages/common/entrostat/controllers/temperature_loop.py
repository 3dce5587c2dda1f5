"""Closed loop on the sampling temperature, by the ratio of target and entropy."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from ..controller import Controller, StepStats
from ..numbers.per_run import as_state, reading
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Positive


@register("temperature_loop")
@dataclass(kw_only=True)
class TemperatureLoop(Controller):
    """Sample the next rollout at T·(1 + T·ln(target/Ĥ)/(ln V + ln ln V)), V the size of the vocabulary.

    The authors' target is the entropy of the first rollout, which they lower by a cosine to 0.9 of it over the last 40%
    of the steps: target=cosine("1x", "0.9x") is near that. Ĥ is the entropy at the temperature of the samples. The
    updates stay as they are; `thermostat` with mode temperature solves for T instead.
    """

    target: NotNegative = 0.5
    """Target entropy of the samples (nats)."""
    vocabulary: Annotated[Number, "[3, inf)"] = 151936
    """V; the default is that of Qwen2.5."""
    temperature_min: Positive = 0.1
    """Lower limit of T. Ours: the authors have none."""
    temperature_max: Positive = 10.0
    """Upper limit of T. Ours: the authors have none."""
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {"target": "1x"}, "released": {"target": "1x"}}
    source: ClassVar = "Liao et al. 2025 (E3, arXiv 2505.18573) and TemperatureScheduler of its repository E3-RL4LLMs"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    state: ClassVar = ("heat",)
    controls = "temperature"

    def __post_init__(self) -> None:
        super().__post_init__()
        ordered = as_state(self.temperature_min) <= as_state(self.temperature_max)
        self._require(ordered, "temperature_min must not be above temperature_max")
        self.heat = as_state(1.0)
        """Sampling temperature of the next rollout."""

    @property
    def temperature(self) -> Tensor:
        return self.heat

    def observe(self, stats: StepStats) -> None:
        entropy, size = reading(stats.entropy), as_state(self.vocabulary).log()
        ratio = as_state(self.target) / entropy.clamp(min=torch.finfo(torch.float64).tiny)
        asked = self.heat * (1 + self.heat * ratio.log() / (size + size.log()))
        low, high = as_state(self.temperature_min), as_state(self.temperature_max)
        self.heat = torch.where(entropy.isnan(), self.heat, asked.clamp(low, high))

    def metrics(self) -> dict[str, Tensor]:
        return {"temperature_loop/temperature": self.heat}
