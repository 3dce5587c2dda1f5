"""Higher reward for correct responses that were unlikely."""

from dataclasses import dataclass
from typing import ClassVar

from ..advantages import advantage_needs, advantage_uses, get_advantage
from ..controller import Context, Controller
from ..numbers.per_run import column
from ..numbers.segments import rank_within
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import Share


@register("unlikeliness")
@dataclass(kw_only=True)
class Unlikeliness(Controller):
    """Reward R·(1 − beta·rank/G), rank 0 for the least likely response of a group of G; advantages recomputed.

    Responses are ranked by their mean log π_old; equal ones share their mean rank. Ranks run from 0 to G − 1, as in the
    released code, so that the least likely response keeps its whole reward; the paper's text counts them from 1 to G.
    Replaces the advantages of the mini-batch. A whole group must be in one mini-batch and on one rank. R is meant to be
    0 or 1.
    """

    beta: Share = 0.25
    """Share of its reward, times (G − 1)/G, that the likeliest response loses."""
    advantage: str = "grpo"
    """Name of the advantage computed from shaped rewards, see `get_advantage`."""
    source: ClassVar = "He et al. 2025 (Rewarding the Unlikely); STEER, table 6"
    quadrants: ClassVar = ("I", "II")

    def __post_init__(self) -> None:
        super().__post_init__()
        get_advantage(self.advantage)
        self._require(not advantage_needs(self.advantage), "advantage must be one that needs rewards only")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"old_logp", "reward", "group_id", "seq_id"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens, responses, groups = context.tokens, context.sequences, context.groups
        reward = responses.pick(tokens.get("reward").expand(tokens.advantage.shape))
        likelihood = responses.mean(tokens.get("old_logp").double()).expand(reward.shape)
        share = rank_within(likelihood, groups).to(reward.dtype) / groups.spread(groups.size)
        shaped = reward * (1 - column(self.beta, reward) * share)
        lengths = {"length": responses.size} if "length" in advantage_uses(self.advantage) else {}
        advantage = responses.spread(get_advantage(self.advantage, context.reduce)(shaped, groups.index, **lengths))
        return plan.shape(advantage.to(tokens.advantage.dtype))
