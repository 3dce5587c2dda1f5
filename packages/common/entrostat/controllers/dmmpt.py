"""Dynamic masking of well-mastered positive tokens."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..controller import Context, Controller
from ..numbers.per_run import column
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number


@register("dmmpt")
@dataclass(kw_only=True)
class Dmmpt(Controller):
    """Drop tokens with p > tau of responses with R ≥ 1 if the mean H of the response is below entropy_low."""

    tau: Annotated[Number, "(0, 1]"] = 0.99
    """Probability above which a token counts as mastered."""
    entropy_low: NotNegative = 0.2
    """Mean entropy of a response (nats) below which its mastered tokens are dropped."""
    source: ClassVar = "Du et al. 2025, dynamic masking of well-mastered positive tokens"
    quadrants: ClassVar = ("I",)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", "entropy", "reward", "seq_id"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens, responses = context.tokens, context.sequences
        mean = responses.mean(tokens.get("entropy"))
        sure = responses.spread(mean < column(self.entropy_low, mean))
        logp = tokens.get("logp")
        dropped = (tokens.get("reward") >= 1) & (logp > column(self.tau, logp).log()) & sure
        return plan.drop(dropped, **{"dmmpt/dropped": context.share(dropped)})
