"""Supervised warm-up: cross-entropy on the response tokens of (prompt, response) pairs."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .kernels import head_stats
from .policy import Policy

IGNORE = -100


def warm_up(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[tuple[str, str]],
    *,
    steps: int = 900,
    batch_size: int = 64,
    lr: float = 3e-3,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train in place with AdamW, a short linear warm-up of the rate and cosine decay to a tenth.

    Args:
        model: policy; left in the training mode it came in.
        tokenizer: its tokenizer, with an eos token.
        examples: (prompt, response) texts; responses get eos appended.
        steps: optimizer steps.
        batch_size: pairs per step, taken from one shuffle per epoch.
        lr: highest learning rate.
        seed: seed of the shuffles; the result is a function of the arguments only.
        progress: called after each step with (step, loss in nats per response token).

    Returns:
        The loss of every step.

    Raises:
        ValueError: without examples, or for steps or batch_size below 1.
    """
    if not examples or steps < 1 or batch_size < 1:
        raise ValueError(
            f"warm-up needs examples, steps and batch_size; got {len(examples)} examples, {steps=}, {batch_size=}"
        )
    ids, labels, lengths = _encode(tokenizer, examples)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps))
    policy, was_training = Policy(model), model.training
    model.train()
    losses = []
    order = torch.empty(0, dtype=torch.long)
    for step in range(steps):
        while len(order) < batch_size:
            order = torch.cat([order, torch.randperm(len(examples), generator=generator)])
        batch, order = order[:batch_size], order[batch_size:]
        width = int(lengths[batch].max())
        loss = _loss(policy, ids[batch, :width].to(model.device), labels[batch, :width].to(model.device))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
        if progress is not None:
            progress(step, losses[-1])
    model.train(was_training)
    return losses


def _rate(step: int, steps: int) -> float:
    """Share of the highest learning rate: linear over the first 5 % of steps, then cosine from 1 to 0.1."""
    ramp = max(1, steps // 20)
    if step < ramp:
        return (step + 1) / ramp
    return 0.55 + 0.45 * math.cos(math.pi * (step - ramp) / max(1, steps - ramp))


def _encode(tokenizer: PreTrainedTokenizerBase, examples: Sequence[tuple[str, str]]) -> tuple[Tensor, Tensor, Tensor]:
    """Right-padded ids (M, L), labels (M, L) with IGNORE outside responses, and lengths (M)."""
    prompts = tokenizer([prompt for prompt, _ in examples])["input_ids"]
    responses = tokenizer([response for _, response in examples], add_special_tokens=False)["input_ids"]
    lengths = torch.tensor([len(p) + len(r) + 1 for p, r in zip(prompts, responses, strict=True)])
    ids = torch.zeros(len(examples), int(lengths.max()), dtype=torch.long)
    labels = torch.full_like(ids, IGNORE)
    for i, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
        answer = torch.tensor([*response, tokenizer.eos_token_id])
        ids[i, : len(prompt)] = torch.tensor(prompt)
        ids[i, len(prompt) : lengths[i]] = answer
        labels[i, len(prompt) : lengths[i]] = answer
    return ids, labels, lengths


def _loss(policy: Policy, ids: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy over response tokens, in nats."""
    # Padding is on the right, after everything a causal model can see, so no attention mask is needed.
    hidden = policy.body(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    targets = labels[:, 1:]
    predicts = targets != IGNORE
    return -head_stats(hidden[predicts], policy.head, targets[predicts]).logp.mean()
