"""Custom loss for prime-rl: controllers whose plan of a response does not depend on the other responses.

    [trainer.loss]
    type = "custom"
    import_path = "entrostat.integrations.prime_rl.loss"

    [trainer.loss.kwargs]
    controller = "clip_higher+opsm"
    controller_args = { eps_high = 0.28, delta = 0.5 }

prime-rl calls a loss with one sequence of T tokens, of which n are trained, adds up what it returns, and divides by the
number of trained tokens of all ranks: a mean over tokens. π_old is the policy of its rollout engine.
"""

import json
import warnings
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..by_name import make
from ..chaining import Chain, chain
from ..controller import Controller
from ..reads import trial_tokens
from ..sample_watch import CompositionWarning, SampleWatch
from ..tokens import Tokens
from .packing import turns
from .splitting import compares_tokens

SUPPORTED = "0.7 and 0.8"
READ = frozenset({"trainer_logprobs", "inference_logprobs", "advantages", "loss_mask", "loss_weights"})
"""Fields of prime-rl's LossInputs that are read; loss_weights may be None."""
UNREAD = frozenset({"ref_logprobs"})
"""Its other field, which holds None or zeros where tokens have advantages."""
AVAILABLE = frozenset({"logp", "old_logp", "seq_id", "position", "turn_id"})
"""Fields of Tokens that a sequence gives, besides the advantage."""
OURS: dict[str, Any] = {"aggregation": "fixed", "denominator": "all", "constant": 1.0}
"""Settings of surrogates that prime-rl's division replaces, as they are set here: the loss is a sum."""
HINTS = {
    "rollout_logp": "; old_logp is the rollout engine's here",
    "ref_logp": "; prime-rl has it only where tokens have no advantage, in opd and opsd",
}
"""Addition to the message for a missing field."""
COMPARES = "it compares the tokens of a mini-batch, and prime-rl's loss gets one sequence at a time"
MOVES = "it is a closed loop or has a schedule, and prime-rl's loss is told neither the step nor the entropy"
UPDATES = 64
"""Trial plans among which a rule that draws tokens has to differ."""
DRAWS = "it draws tokens at random, and prime-rl's loss is not told the step, so that all draws would be the same"


def loss(
    inputs: Any, controller: str, controller_preset: str = "paper", controller_args: Mapping[str, Any] | None = None
) -> Any:
    """Return prime-rl's LossOutputs for one of its LossInputs: the sum over the sequence's trained tokens, and metrics.

    inputs: tensors (T,); `trainer_logprobs` has a gradient. The other arguments are trainer.loss.kwargs. Metrics are ()
    each; a sequence without trained tokens has none, and the loss 0. Raises ValueError in the same cases as `build`,
    ImportError if prime-rl is missing or another one.
    """
    outputs = _loss_outputs()
    built = _built(controller, controller_preset, json.dumps(dict(controller_args or {}), sort_keys=True))
    index = inputs.loss_mask.nonzero()[:, 0]
    logp = _at(inputs.trainer_logprobs, index)
    if not len(index):
        return outputs(loss=logp.sum(), metrics={})  # every rank must run backward
    tokens = Tokens(
        logp=logp.detach(),
        old_logp=_at(inputs.inference_logprobs, index).detach(),
        advantage=_at(inputs.advantages, index).detach(),
        seq_id=torch.zeros_like(index),
        position=torch.arange(len(index), device=index.device),
        turn_id=turns(inputs.loss_mask.bool()).index_select(0, index),
    )
    plan = built.plan(tokens)
    found = plan.token_loss(logp)
    if inputs.loss_weights is not None:
        found = found * _at(inputs.loss_weights, index)
    metrics = {"clip_fraction": plan.clipped(logp.detach()).float(), **plan.info}
    return outputs(
        loss=found.sum(), metrics={f"entrostat/{key}": value.float().mean() for key, value in metrics.items()}
    )


def build(controller: str, controller_preset: str = "paper", controller_args: Mapping[str, Any] | None = None) -> Chain:
    """Return the controller that `loss` uses, of names joined by + and hyperparameters. Does not need prime-rl.

    Raises ValueError on what `make` refuses, on a setting that averages tokens, and, by name, on a part that needs more
    than one sequence. Warns if the average or the samples are not those that a part is published with.
    """
    settings = dict(controller_args or {})
    for key in settings:
        if key.rpartition(".")[2] in OURS:
            raise ValueError(f"{key}: prime-rl averages over the trained tokens of all ranks")
    asked = make(controller, controller_preset, **settings)
    parts = (asked.surrogate, *asked.parts)
    for part in parts:
        if reason := why_not(part):
            raise ValueError(f"controller {part.name!r} cannot run in prime-rl: {reason}")
    if compares_tokens(asked):
        raise ValueError(f"controller {asked.name!r} cannot run in prime-rl: {COMPARES}")
    published = asked.surrogate.aggregation
    if published != "token-mean":
        _warn(f"{asked.surrogate.name!r} is published with aggregation {published!r}: prime-rl averages over tokens")
    if strict := [part.name for part in parts if part.strictly_on_policy]:
        _warn(f"{strict[0]!r} is strictly on-policy by its rule: prime-rl's samples are of an older policy")
    built = make(controller, controller_preset, **settings, **OURS)
    built.samples = SampleWatch(())  # the warning has been given
    return built


def why_not(part: Controller) -> str:
    """Return why one sequence without entropies, groups or steps is not enough for a part of a chain; "" if it is."""
    alone = chain(part)
    alone.samples = SampleWatch(())
    wanted = alone.needs | ({"truncated_entropy"} if alone.support is not None else set())
    if missing := sorted(wanted - AVAILABLE):
        names = ", ".join(f"Tokens.{name}" for name in missing)
        return f"it needs {names}, which prime-rl's loss does not get{''.join(HINTS.get(name, '') for name in missing)}"
    if part.state_dict() or part.schedules:
        return MOVES
    if compares_tokens(alone):
        return COMPARES
    tokens = trial_tokens(0)
    plans = (alone.plan(tokens, seed=update, step=update) for update in range(UPDATES))
    first, *others = (plan.coefficients(tokens.get("logp"), tokens.get("entropy"))[0] for plan in plans)
    return "" if all(torch.equal(first, other) for other in others) else DRAWS


@cache
def _built(controller: str, preset: str, settings: str) -> Chain:
    """Return the controller of these settings, JSON, built once in a process."""
    return build(controller, preset, json.loads(settings))


def _at(x: Tensor, index: Tensor) -> Tensor:
    """Return x (T,) at the tokens of `index` (n,), in float32 or wider."""
    return x.index_select(0, index).to(torch.promote_types(x.dtype, torch.float32))


def _warn(message: str) -> None:
    warnings.warn(message, CompositionWarning, stacklevel=3)


@cache
def _loss_outputs() -> Any:
    """Return prime-rl's class LossOutputs. Raises ImportError if its LossInputs are not those that `loss` reads."""
    try:
        from prime_rl.trainer.rl.loss import LossInputs, LossOutputs
    except ImportError as error:
        raise ImportError(
            f"entrostat.integrations.prime_rl is written for prime-rl {SUPPORTED}, which cannot be imported ({error}): "
            "install it from https://github.com/PrimeIntellect-ai/prime-rl"
        ) from None
    held = {field.name for field in fields(LossInputs)}
    if missing := sorted(READ - held):
        raise ImportError(f"written for prime-rl {SUPPORTED}: LossInputs of this one have no {', '.join(missing)}")
    if unknown := sorted(held - READ - UNREAD):
        warnings.warn(f"written for prime-rl {SUPPORTED}: LossInputs.{unknown[0]} is not read", stacklevel=3)
    return LossOutputs
