"""Checks for controllers that contradict each other or the way the samples are used.

Closed loops on the same actuator, or on the same entropy, are found when a chain is built; only the plans show whether
the policy has moved since the rollout.
"""

import warnings
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from .controller import Controller
from .tokens import Tokens

SAME_POLICY = 1e-5
"""Largest |log π − log π_old| (nats) that rounding causes between equal policies."""
REASONS = {
    "weight": "the weights of tokens",
    "bonus": "the entropy bonus",
    "clip": "the clip bounds",
    "anchor": "the penalty to the reference policy",
}
OPPOSITES = {
    frozenset({"positive_only", "negative_only"}): "together they drop every token that has an advantage",
    frozenset({"adaptive_clip", "bapo"}): "both set the clip bounds",
    frozenset({"adapo", "bapo"}): "both set the clip bounds",
    frozenset({"arbitrary_entropy", "lp_reg"}): "both need log π of a proxy, and tokens have one",
    frozenset({"siren", "truncated_entropy_bonus"}): "both set the bonus on truncated entropies",
}


class CompositionWarning(UserWarning):
    """Warning about controllers that run, but not as their rules intend."""


def check_parts(parts: Sequence[Controller]) -> None:
    """Raise ValueError if parts contradict each other or closed loops share an actuator; warn of other loop pairs."""
    names = {part.name for part in parts}
    for pair, reason in OPPOSITES.items():
        if pair <= names:
            raise _contradiction(pair, reason)
    anchored = [part.name for part in parts if part.anchored]
    if len(anchored) > 1:
        raise _contradiction(
            anchored[:2], "both penalise the divergence from a policy, and a plan has one such penalty"
        )
    settings = [vars(part) for part in parts]
    if any(s.get("denominator") == "kept" for s in settings) and any(s.get("tokens") == "kept" for s in settings):
        raise ValueError("entropy_bonus with tokens=kept averages over the kept tokens itself: set denominator to all")
    loops = [part for part in parts if part.controls is not None]
    for i, first in enumerate(loops):
        for second in loops[:i]:
            shared = [what for what in _moves(first) if what in _moves(second)]
            if shared:
                what = " and ".join(shared)
                raise ValueError(
                    f"{second.name!r} and {first.name!r} are both closed loops on {what}: each would react to the "
                    "other's changes, so choose one"
                )
    if len(loops) > 1:
        who = " and ".join(f"{part.name!r} ({' and '.join(_moves(part))})" for part in loops)
        _warn(
            f"{who} are closed loops on one entropy: unless their targets are equal they work against each other, "
            "and the one with an integral winds up"
        )


def _contradiction(names: Iterable[str], reason: str) -> ValueError:
    return ValueError(f"{' and '.join(map(repr, sorted(names)))} contradict each other: {reason}")


class SampleWatch:
    """Check of a chain's samples that warns once if they do not suit its parts.

    Call `saw` with the tokens of every plan and `rollout_ended` once per rollout step. On a GPU the comparison stays on
    the device until then, so that planning never waits for it; once the answer is known nothing is compared.
    """

    def __init__(self, parts: Sequence[Controller]) -> None:
        self.strict = [part.name for part in parts if part.strictly_on_policy]
        self.idle = [part.name for part in parts if part.idle_on_policy]
        self.plans = 0
        self.gap: Tensor | None = None
        """Largest |log π − log π_old| since the last rollout step, on the device; None while it cannot have moved."""

    def saw(self, tokens: Tokens) -> None:
        if not (self.strict or self.idle) or tokens.logp is None or tokens.old_logp is None or not tokens.size:
            return
        self.plans += 1
        if tokens.logp is tokens.old_logp:
            return
        gap = torch.dist(tokens.logp.detach(), tokens.old_logp, p=torch.inf)
        self.gap = gap if self.gap is None else torch.maximum(self.gap, gap)
        if gap.device.type == "cpu":
            self._judge(ended=False)

    def rollout_ended(self) -> None:
        if self.plans:
            self._judge(ended=True)
        self.plans, self.gap = 0, None

    def _judge(self, ended: bool) -> None:
        moved = self.gap is not None and float(self.gap) > SAME_POLICY
        if moved:
            self.idle = []
            if self.strict:
                _warn(
                    f"{_names(self.strict)} strictly on-policy by its rule, but log π differs from log π_old: samples "
                    "are used more than once, or the rollout engine computes other log-probabilities, so the entropy "
                    "change that it balances is not the one of the update"
                )
                self.strict = []
        elif ended and self.idle:
            _warn(
                f"{_names(self.idle)} without effect: log π equalled log π_old in all updates of a "
                "rollout, so the rule changed no gradient; use samples for several updates, or another controller"
            )
            self.idle = []


def _moves(loop: Controller) -> list[str]:
    """Return the actuators of a closed loop, in words."""
    return [REASONS.get(name, name) for name in str(loop.controls).split("+")]


def _names(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names)) + (" is" if len(names) == 1 else " are")


def _warn(message: str) -> None:
    warnings.warn(message, CompositionWarning, stacklevel=2)
