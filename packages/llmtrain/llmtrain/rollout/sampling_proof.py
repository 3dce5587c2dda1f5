"""Proof that sampling by transformers is right for a model: tried on a few tokens before the first rollout.

A model's attention may change keys before it uses them, a layer may keep a state whose rows cannot be repeated or
dropped, and a model may count positions itself, so that left padding shifts them. Such a model is sampled in a slower
way. If in every way sampled tokens have other log-probabilities than by the model's own logits, it is refused.
"""

import re

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..policy.attention import attend_by_sequence
from ..policy.compiled import eager
from ..policy.logits import FLOOR, ROUNDING, family, in_a_line, sample
from ..policy.precision import casts, without_gradients
from .hf import HFRollout, Way, ways

PROMPTS, EACH, TOKENS = (3, 5), 2, 3
"""Tokens of the prompts, responses to each, and tokens of a response."""
UNUSED = re.compile("classifier|summary")
"""Beginnings of settings of heads that a policy has not."""
DRAWS = 3
"""Passes in training that must be equal for a model that draws no random numbers."""
EXACT = 1e-5
"""Largest mean gap (nats) for which the trainer's own pass over a rollout tells nothing new: in fp32 it would differ as
much from its passes in the update, where tokens lie in other batches."""


def way_to_sample(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Way:
    """Return the fastest way to sample a model that gives its own log-probabilities. All ranks take the same steps.

    Raises:
        ValueError: if sampled tokens have other log-probabilities than by the model's own logits, in any way.
    """
    attend_by_sequence(model)
    dtype = torch.bfloat16 if casts(model) else model.dtype
    reasons: list[str] = []
    for way in ways(model):
        try:
            gaps, largest = _gaps(model, tokenizer, way)
        except Exception as error:
            reasons.append(in_a_line(error))
            continue
        gap = float(gaps.mean())
        if gap <= FLOOR + ROUNDING[dtype] * largest:
            return way
        reasons.append(f"sampled tokens have other log-probabilities than by its own logits, by {gap:.2g} nats")
    raise ValueError(f"rollout.name hf cannot sample with {family(model)}: {reasons[-1]}; use rollout.name vllm")


def is_exact(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, way: Way) -> bool:
    """Return True if sampled tokens have the log-probabilities of a pass in training: in fp32, EXACT in the mean.

    Training may draw random numbers: dropout, layers left out, a router that tries other experts. What is drawn seldom
    may not show in a few passes, so settings are asked as well.
    """
    if model.dtype != torch.float32 or casts(model) or (model.training and _draws(model)):
        return False
    cuda = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda), eager(), without_gradients(model):
        passes = []
        for seed in range(DRAWS):
            torch.manual_seed(seed)
            passes.append(model(input_ids=sample(model).to(model.device), use_cache=False).logits)
        alike = all(torch.equal(passes[0], other) for other in passes)
    return alike and float(_gaps(model, tokenizer, way, training=model.training)[0].mean()) <= EXACT


def _draws(model: PreTrainedModel) -> bool:
    """Return True if a setting says that training draws random numbers."""
    settings = model.config.get_text_config().to_dict().items()
    return any(
        isinstance(value, float) and value > 0 and re.search("drop|jitter|noise", name) and not UNUSED.match(name)
        for name, value in settings
    )


def _gaps(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, way: Way, training: bool = False
) -> tuple[Tensor, float]:
    """Return the gaps of log-probabilities (nats) of sampled tokens, and the model's largest logit.

    training: compare with passes as they are made in training.
    """
    rows = sample(model).tolist()
    prompts = [row[:length] for row, length in zip(rows, PROMPTS, strict=False)]
    uniforms = list(torch.linspace(0.1, 0.9, len(prompts) * EACH * TOKENS).double().view(-1, EACH, TOKENS))
    sampler = HFRollout(
        model, tokenizer, max_new_tokens=TOKENS, generator=torch.Generator(), stop_token_ids=(), way=way
    )
    found = sampler.generate(prompts, EACH, uniforms=uniforms)
    responses = found.response_ids.split(found.response_lengths.tolist())
    gaps, largest, was_training = [], 0.0, model.training
    model.train(training)
    try:
        with eager(), without_gradients(model):
            for owner, response, logp in zip(
                found.prompt_index.tolist(), responses, found.logp.split(found.response_lengths.tolist()), strict=True
            ):
                ids = torch.tensor([[*prompts[owner], *response.tolist()]], device=model.device)
                logits = model(input_ids=ids, use_cache=False).logits[0, len(prompts[owner]) - 1 : -1].float()
                own = logits.log_softmax(-1).gather(1, response.to(logits.device)[:, None])[:, 0]
                gaps.append((own.cpu() - logp.cpu()).abs())
                largest = max(largest, float(logits.abs().max()))
    finally:
        model.train(was_training)
    return torch.cat(gaps), largest
