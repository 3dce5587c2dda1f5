"""Check of the samples that a chain plans for: numbers that cannot be right, and a policy that moved or did not."""

import warnings
from collections.abc import Sequence
from math import isnan

import torch
from torch import Tensor

from .controller import Controller
from .tokens import Tokens, check_logp

SAME_POLICY = 1e-5
"""Largest |log π − log π_old| (nats) that rounding causes between equal policies."""
LOOKS = 4
"""Plans whose log-probabilities are looked at."""


class CompositionWarning(UserWarning):
    """Warning about controllers that run, but not as their rules intend."""


class SampleWatch:
    """Check of a chain's samples that warns once if they do not suit its parts, and refuses an entropy of NaN.

    Call `saw` with the tokens of every plan and `rollout_ended` once per rollout step. On a GPU what is found stays on
    the device until then, so that planning waits for it only in the first plans; once it is known whether samples suit,
    they are not compared any more. A token whose log-probability is not finite either, and an advantage of NaN, are
    left to whoever takes the step.
    """

    def __init__(self, parts: Sequence[Controller]) -> None:
        self.strict = [part.name for part in parts if part.strictly_on_policy]
        self.idle = [part.name for part in parts if part.idle_on_policy]
        self.plans = 0
        self.looks = LOOKS
        """Plans whose log-probabilities are still to be looked at."""
        self.gap: Tensor | None = None
        """Largest |log π − log π_old| since the last rollout step, on the device; None while it cannot have moved."""
        self.lost: dict[str, Tensor] = {}
        """Number of tokens since the last rollout step with a probability and a number of NaN, by field,
        on the device."""
        self.told: set[str] = set()
        """Fields with a warning about numbers of NaN that their owner may leave out."""

    def saw(self, tokens: Tokens) -> None:
        self._look(tokens)
        self._count(tokens)
        if not (self.strict or self.idle) or tokens.logp is None or tokens.old_logp is None or not tokens.size:
            return
        self.plans += 1
        if tokens.logp is tokens.old_logp:
            return
        gap = torch.dist(tokens.logp.detach(), tokens.old_logp, p=torch.inf)
        self.gap = gap if self.gap is None else torch.maximum(self.gap, gap)
        if gap.device.type == "cpu":
            self._judge(ended=False)

    def _look(self, tokens: Tokens) -> None:
        """Look at the log-probabilities of the first plans."""
        if not self.looks or tokens.logp is None or not tokens.logp.numel() or torch.compiler.is_compiling():
            return
        self.looks -= 1
        if doubt := check_logp(tokens):
            self.looks = 0
            warn(doubt)

    def _count(self, tokens: Tokens) -> None:
        """Look for numbers of NaN. A trainer's numbers are not those of a compiled simulation, which has none."""
        if tokens.logp is None or torch.compiler.is_compiling():
            return
        for name in ("entropy", "advantage", "old_logp"):
            x = getattr(tokens, name)
            if x is None or (x.device.type == "cpu" and not isnan(float(x.sum()))):
                continue
            lost = (x.isnan() & tokens.logp.isfinite()).sum()
            self.lost[name] = self.lost[name] + lost if name in self.lost else lost
        if tokens.advantage.device.type == "cpu":
            self._tell()

    def _tell(self) -> None:
        """Refuse an entropy of NaN, warn once of an advantage or an old log-probability of NaN."""
        lost, self.lost = {name: int(count) for name, count in self.lost.items()}, {}
        if count := lost.get("entropy"):
            raise ValueError(
                f"Tokens.entropy is NaN for {count:,} tokens with a finite logp: −Σ p·log p is NaN where a logit is "
                "−inf, unless 0·log 0 counts as 0, as in torch.special.entr(p)"
            )
        for name, fix in (
            ("advantage", "leave it out on all ranks, or give responses without a reward the reward 0"),
            ("old_logp", "leave it out on all ranks"),
        ):
            if (count := lost.get(name)) and name not in self.told:
                self.told.add(name)
                warn(f"Tokens.{name} is NaN for {count:,} tokens with a finite logp, and so is the update: {fix}")

    def rollout_ended(self) -> None:
        self._tell()
        if self.plans:
            self._judge(ended=True)
        self.plans, self.gap = 0, None

    def _judge(self, ended: bool) -> None:
        moved = self.gap is not None and float(self.gap) > SAME_POLICY
        if moved:
            self.idle = []
            if self.strict:
                warn(
                    f"{named(self.strict)} strictly on-policy by its rule, but log π differs from log π_old: samples "
                    "are used more than once, or the rollout engine computes other log-probabilities, so the entropy "
                    "change that it balances is not the one of the update"
                )
                self.strict = []
        elif ended and self.idle:
            warn(
                f"{named(self.idle)} without effect: log π equalled log π_old in all updates of a "
                "rollout, so the rule changed no gradient; use samples for several updates, or another controller"
            )
            self.idle = []


def named(names: Sequence[str]) -> str:
    """Return names as the subject of a sentence, with its verb."""
    return " and ".join(map(repr, names)) + (" is" if len(names) == 1 else " are")


def warn(message: str) -> None:
    """Warn of controllers that run, but not as their rules intend."""
    warnings.warn(message, CompositionWarning, stacklevel=2)
