"""EPO: an entropy bonus for agents, with a penalty outside a band around the average of the past."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ..controller import Context, Controller, StepStats
from ..numbers.per_run import as_state, column, reading
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative


@register("epo")
@dataclass(kw_only=True)
class Epo(Controller):
    """−coef·(H − smooth·P): P the penalty of entropies outside low·Ĥ..high·Ĥ, Ĥ the mean of all rollouts so far.

    As published P is the constant `penalty` outside the band, which has no gradient: the update is that of
    entropy_bonus (form=constant, as in both presets). With form=linear, ours, P is penalty times the distance from the
    band, so that the bonus is coef·(1 − smooth·penalty) above it and coef·(1 + smooth·penalty) below. In the released
    code each turn number has an average of its own; here one entropy is observed for all. Its weight of the penalty by
    epoch is a schedule of `smooth`.
    """

    coef: NotNegative = 0.001
    """Coefficient of the bonus."""
    smooth: NotNegative = 1.0
    """Coefficient of the penalty relative to the bonus."""
    penalty: NotNegative = 2.0
    """P for each nat outside the band; with form=constant P itself, published 0.05 and 0.1. Ours."""
    low: NotNegative = 0.0
    """Lower end of the band, times the average."""
    high: NotNegative = 2.0
    """Upper end of the band, times the average."""
    per: Literal["token", "turn"] = "token"
    """Entropy that is compared with the band: of the token, or the mean of its turn."""
    form: Literal["linear", "constant"] = "linear"
    """Penalty outside the band: linear in the distance, or constant."""
    first_turn: NotNegative = 0.0
    """Turn, from 0, from which there is a penalty."""
    source: ClassVar = "Xu et al. 2025 (EPO, arXiv 2509.22576), and its released code"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    state: ClassVar = ("average", "rollouts")
    controls = "bonus"
    presets: ClassVar = {
        "paper": {"form": "constant", "penalty": 0.1},
        "released": {"form": "constant", "penalty": 0.1, "first_turn": 25.0},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(torch.as_tensor(self.low <= self.high), "low must not be above high")
        self.average = as_state(torch.nan)
        """Mean of the observed entropies (nats); NaN before the first, and then there is no penalty."""
        self.rollouts = as_state(0.0)
        """Number of rollouts in the average."""

    @property
    def needs(self) -> frozenset[str]:
        turn = {"turn_id", "seq_id"} if self.per == "turn" else {"turn_id"} if self._spares_turns else set()
        return frozenset({"entropy"} | turn)

    @property
    def _spares_turns(self) -> bool:
        """True if early turns have no penalty, or may have none later by a schedule."""
        return "first_turn" in self.schedules or bool((as_state(self.first_turn) > 0).any())

    def observe(self, stats: StepStats) -> None:
        entropy = reading(stats.entropy)
        known = ~entropy.isnan()
        seen = self.rollouts + known.double()
        before = self.average.nan_to_num(nan=0.0)
        self.average = torch.where(known, before + (entropy - before) / seen.clamp(min=1), self.average)
        self.rollouts = seen

    def transform(self, plan: Plan, context: Context) -> Plan:
        like = context.tokens.advantage
        side = self._side(context)
        told = {"epo/outside": context.share(side != 0)}
        coef = column(self.coef, like)
        if self.form == "constant":
            return plan.add_entropy_bonus(coef, **told)
        return plan.add_entropy_bonus(coef * (1 - column(self.smooth * self.penalty, like) * side), **told)

    def _side(self, context: Context) -> Tensor:
        """Return 1 for tokens above the band, −1 below and 0 inside, (..., N)."""
        tokens = context.tokens
        entropy = tokens.get("entropy").expand(tokens.advantage.shape)
        if self.per == "turn":
            entropy = context.turns.spread(context.turns.mean(entropy))
        average = column(self.average, entropy)
        above, below = entropy > column(self.high, entropy) * average, entropy < column(self.low, entropy) * average
        side = above.to(entropy.dtype) - below.to(entropy.dtype)
        if self._spares_turns:
            side = torch.where(tokens.get("turn_id") >= column(self.first_turn, entropy), side, 0.0)
        return side
