"""Keeping the entropy in a band by choosing which sign of the advantage is learned from."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch

from ..controller import Context, Controller, StepStats
from ..numbers.per_run import as_state, column, reading
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number
from ..settings.schedules import Knot, Schedule


@register("aepo")
@dataclass(kw_only=True)
class Aepo(Controller):
    """Drop A < 0 once Ĥ > target + band, until Ĥ < target − band (hysteresis).

    Adaptive entropy-controlled policy optimization. It can only lower the entropy, and only through tokens with A < 0;
    without negative advantages it is a no-op. SCOPE-RL (arXiv 2510.08141), AEPO before its version 7, is
    `arbitrary_entropy`.
    """

    target: NotNegative = 0.3
    """Middle of the band (nats). No value is published; this one is ours."""
    band: NotNegative = 0.1
    """Half-width of the band (nats). Ours."""
    state: ClassVar = ("masking",)
    controls = "weight"
    source: ClassVar = "Shen et al. 2025 (QwenLong-L1.5, AEPO)"
    quadrants: ClassVar = ("III", "IV")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.masking = torch.tensor(False)

    def observe(self, stats: StepStats) -> None:
        error = reading(stats.entropy) - self.target
        self.masking = (error > self.band) | (self.masking & ~(error < -as_state(self.band)))

    def transform(self, plan: Plan, context: Context) -> Plan:
        dropped = (context.tokens.advantage < 0) & self.masking.unsqueeze(-1).to(context.tokens.advantage.device)
        return plan.drop(dropped, **{"aepo/dropped": context.share(dropped)})


@register("entrocraft")
@dataclass(kw_only=True)
class Entrocraft(Controller):
    """Only A ≥ 0 while Ĥ > target + band, only A ≤ 0 while Ĥ < target − band, every token in between.

    `anneal` stands for target=linear(target, target − anneal), over the whole training. Relies on positives lowering
    and negatives raising the entropy, which holds for reused samples under a ratio clip and not strictly on-policy.
    Outside the band the paper (algorithm 1) filters responses by the sign of A, while the released code trains on the
    score of one sign, without a baseline: A = max(s, 0) above the band (RAFT++), min(s, 0) below it (NSR), s = 1 for a
    correct response and −1 for a wrong one. Published bands: 0.6 to 0.7 falling linearly to 0.4 to 0.5 (released
    preset), and to 0.1 to 0.2 linearly or along a cosine, target=cosine(0.65, 0.15); a fixed target of 0.5. The
    defaults are ours, for small models.
    """

    target: NotNegative = 0.3
    """Initial middle of the band (nats). Ours; the authors start at 0.65."""
    band: NotNegative = 0.02
    """Half-width of the band (nats). Ours; the authors take 0.05."""
    anneal: Number = 0.0
    """Fall of the target over the training (nats); negative for a rise."""
    outside: Literal["sign", "score"] = "sign"
    """Advantage outside the band: sign keeps A of one sign, score replaces A by the score s of one sign."""
    wrong_reward: Annotated[Number, "(-inf, 1)"] = 0.0
    """Reward of a wrong response, if that of a correct one is 1: s = −1. Used with outside=score."""
    state: ClassVar = ("side",)
    initial_only: ClassVar = ("anneal",)
    controls = "weight"
    presets: ClassVar = {
        "paper": {},
        "released": {"target": 0.65, "band": 0.05, "anneal": 0.2, "outside": "score"},
    }
    source: ClassVar = "Li et al. 2026 (Entrocraft), algorithm 1, and its released code"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool((as_state(self.anneal) != 0).any()):
            self._require("target" not in self.schedules, "target moves by its own schedule: leave anneal out")
            ends = Knot(0, self.target), Knot(1, self.target - self.anneal)
            self.anneal = 0.0
            self.move(target=Schedule("linear", ends, whole=True))
        self.side = as_state(0.0)
        """Position of the entropy: 1 above the band, −1 below, 0 inside."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"reward"} if self.outside == "score" else ())

    def observe(self, stats: StepStats) -> None:
        error = reading(stats.entropy) - self.target
        band = as_state(self.band)
        side = (error > band).double() - (error < -band).double()
        self.side = torch.where(error.isnan(), self.side, side)

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage = context.tokens.advantage
        side = column(self.side, advantage)
        if self.outside == "score":
            wrong = column(self.wrong_reward, advantage)
            score = 2 * (context.tokens.get("reward").to(advantage.dtype) - wrong) / (1 - wrong) - 1
            one_sign = (side * score).clamp(min=0) * side
            unused = context.share((side != 0) & (one_sign == 0))
            return plan.shape(torch.where(side == 0, advantage, one_sign), **{"entrocraft/dropped": unused})
        dropped = side * advantage < 0
        return plan.drop(dropped, **{"entrocraft/dropped": context.share(dropped)})
