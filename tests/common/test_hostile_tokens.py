"""Tokens that a run may meet once: every controller, in every precision, gives a finite update or a one-line error.

Of tokens that are not finite the update may not be either, which the trainer's guard stops.
"""

from dataclasses import replace

import pytest
import torch
from helpers import sampled_tokens
from test_plan import CONTROLLERS, IDS, planned

from entrostat import Tokens

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::entrostat.CompositionWarning")]
DTYPES = (
    torch.float32,
    torch.bfloat16,
    *(pytest.param(dtype, marks=pytest.mark.long) for dtype in (torch.float64, torch.float16)),
)
MEASURED = ("logp", "old_logp", "ref_logp", "proxy_logp", "rollout_logp", "entropy", "old_entropy", "truncated_entropy")
BEYOND = (float("nan"), float("inf"), -float("inf"))


def filled(t: Tokens, value: float, *names: str) -> Tokens:
    return replace(t, **{name: torch.full_like(getattr(t, name), value) for name in names})


def first(t: Tokens, count: int) -> Tokens:
    return Tokens(**{name: None if x is None else x[..., :count] for name, x in vars(t).items()})


def with_first(t: Tokens, name: str, value: float) -> Tokens:
    changed = getattr(t, name).clone()
    changed[..., 0] = value
    return replace(t, **{name: changed})


def far(t: Tokens) -> float:
    """Distance of log-probabilities (nats): products with numbers above e^11 do not fit into float16."""
    return 3.0 if t.logp.dtype == torch.float16 else 60.0


FINITE = {
    "as they come": lambda t: t,
    "no token": lambda t: first(t, 0),
    "one token": lambda t: first(t, 1),
    "no advantage": lambda t: filled(t, 0.0, "advantage"),
    "equal advantages": lambda t: filled(t, 1.0, "advantage"),
    "equal negative advantages": lambda t: filled(t, -1.0, "advantage"),
    "large advantages": lambda t: replace(t, advantage=t.advantage * 1e3),
    "small advantages": lambda t: replace(t, advantage=t.advantage * 1e-7),
    "certain tokens": lambda t: filled(t, 0.0, *MEASURED, "s2l", "s2ll"),
    "impossible tokens": lambda t: filled(t, -1e4, "logp", "old_logp", "ref_logp", "proxy_logp", "rollout_logp"),
    "large ratio": lambda t: replace(t, old_logp=t.logp - far(t)),
    "small ratio": lambda t: replace(t, logp=t.old_logp - far(t)),
    "reference far below": lambda t: replace(t, ref_logp=t.logp - far(t)),
    "reference far above": lambda t: replace(t, ref_logp=t.logp + far(t)),
    "all rewards equal": lambda t: filled(t, 1.0, "reward"),
}
"""Hostile tokens with finite numbers."""
NOT_FINITE = {f"{name} {value}": (name, value) for name in ("logp", "advantage", "entropy") for value in BEYOND}
"""Fields and values of one token that is not finite, which a run's guard stops."""


def gradients(spec, settings, t: Tokens) -> list[torch.Tensor]:
    """Gradients of the loss in log π and in the entropy."""
    plan = planned(spec, settings, t)
    inputs = {name: getattr(t, name).clone().requires_grad_() for name in ("logp", "entropy", "truncated_entropy")}
    loss = plan.loss(inputs["logp"], inputs["entropy"], truncated_entropy=inputs["truncated_entropy"])
    found = torch.autograd.grad(loss.sum(), list(inputs.values()), allow_unused=True)
    return [loss.detach(), *(x for x in found if x is not None)]


def tried(spec, settings, t: Tokens) -> list[torch.Tensor]:
    """Gradients, or none if the tokens are refused in one line."""
    try:
        return gradients(spec, settings, t)
    except ValueError as error:
        if not str(error).isprintable():
            raise
        return []


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_finite_tokens_give_finite_updates(spec, settings, dtype):
    wrong = [
        name
        for name, hostile in FINITE.items()
        if not all(x.isfinite().all() for x in tried(spec, settings, hostile(sampled_tokens(20, dtype=dtype))))
    ]
    assert not wrong


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_a_token_that_is_not_finite_raises_nothing_but_one_line(spec, settings, dtype):
    for name, value in NOT_FINITE.values():
        tried(spec, settings, with_first(sampled_tokens(20, dtype=dtype), name, value))
