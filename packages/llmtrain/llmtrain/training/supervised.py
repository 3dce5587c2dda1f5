"""Supervised warm-up: cross-entropy, or GEM, on the response tokens of (prompt, response) pairs.

examples ─► token ids ─► batch ─► share of each rank ─► [micro-batch ─► policy ─► −Σ log π / N ─► backward]* ─► step

GEM with a linear h (Li et al. 2025, arXiv 2408.16673; `gem_loss` of their sft_trainer.py) is the loss
−Σ_a q_a (log p_y − log p_a), with p = softmax(z), and q = softmax(z/β) without gradient. In z its gradient is q − e_y,
that of β times the cross-entropy of q. So it is trained as cross-entropy of the policy at temperature β, from the fused
head, and the loss that is reported is that cross-entropy. The authors' other h weights a token's terms by
σ(.01·(z_a − z_y)), which is nearly ½ for all of them: half the gradient, which AdamW does not see.

Layouts, micro-batches, engines and ranks are the same as in training, and N counts the response tokens of all ranks:
the update does not depend on the split of the batch.

    policy = Policy(model, layout="packed")
    engine = TorchEngine(model, optim(lr=3e-3, steps=900), updates=900)
    losses = warm_up(policy, engine, encode(tokenizer, examples), steps=900)
"""

from collections.abc import Callable, Sequence

import torch
from transformers import PreTrainedTokenizerBase

from entrostat import Tokens, make

from ..data import Prompt
from ..data.prompts import encode_all, quoted, token_ids
from ..policy.engine import Engine, NonFiniteError
from ..policy.policy import Policy
from ..sequences.batch import Batch, padded
from ..settings.config import OptimConfig


def optim(lr: float, steps: int) -> OptimConfig:
    """Return AdamW settings of a warm-up of `steps` steps: `lr` is reached after 5% of them and falls to a tenth."""
    return OptimConfig(
        lr=lr,
        betas=(0.9, 0.95),
        weight_decay=0.01,
        max_grad_norm=1.0,
        lr_schedule="cosine",
        warmup_steps=steps // 20,
        min_lr_ratio=0.1,
    )


def warm_up(
    policy: Policy,
    engine: Engine,
    examples: Batch,
    *,
    steps: int = 900,
    batch_size: int = 64,
    micro_batch_tokens: int = 8192,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train in place; all ranks call it with the same examples and settings.

    Args:
        policy: keeps its training mode.
        engine: made for this policy with the settings of `optim`.
        examples: see `encode`.
        steps: optimizer steps.
        batch_size: pairs per step over all ranks, drawn from one shuffle per epoch.
        micro_batch_tokens: tokens per forward pass; changes speed and memory, not the update.
        seed: seed of the shuffles; the result depends only on the arguments.
        progress: called after each step with (step, loss in nats per response token).

    Returns:
        The loss of every step, the same on all ranks.

    Raises:
        ValueError: without examples, for steps or batch_size below 1, or if a loss or a gradient is not finite.
    """
    if not len(examples) or steps < 1 or batch_size < 1:
        raise ValueError(
            f"warm-up needs examples, steps and batch_size; got {len(examples)} examples, {steps=}, {batch_size=}"
        )
    ranks = engine.ranks
    generator, order = torch.Generator().manual_seed(seed), torch.empty(0, dtype=torch.long)
    was_training = policy.model.training
    policy.model.train()
    losses: list[float] = []
    for step in range(steps):
        while len(order) < batch_size:
            order = torch.cat([order, torch.randperm(len(examples), generator=generator)])
        chosen, order = order[:batch_size], order[batch_size:]
        try:
            losses.append(update(policy, engine, examples.select(chosen[ranks.rank :: ranks.size]), micro_batch_tokens))
        except NonFiniteError as error:
            raise ValueError(f"warm-up step {step}: {error}; lower sft.lr") from None
        if progress is not None:
            progress(step, losses[-1])
    policy.model.train(was_training)
    return losses


def update(policy: Policy, engine: Engine, batch: Batch, micro_batch_tokens: int) -> float:
    """Take one optimizer step on −Σ log π / N over the response tokens of all ranks; `batch` is this rank's share.

    Returns the loss (nats) over all ranks. It is the policy gradient with an advantage of 1, times the temperature of
    the policy, so that its gradient in the logits is π − e_y at every temperature: GEM's, where that is β.
    """
    ones = torch.ones(int(batch.response_lengths.sum()), device=policy.model.device)
    plan = make("reinforce").plan(Tokens(logp=None, old_logp=None, advantage=ones), engine.ranks.reduce)
    slices = policy.slices(batch, torch.arange(len(batch)), micro_batch_tokens)
    total = torch.zeros((), dtype=torch.float64)
    for some in padded(slices, engine.begin(len(slices))):
        loss, _ = policy.loss(batch, some, plan, batch.response_index(some).to(ones.device))
        engine.backward(loss * policy.temperature)
        total += loss.detach().cpu()
    engine.step()
    return float(engine.ranks.total(total))


def encode(tokenizer: PreTrainedTokenizerBase, examples: Sequence[tuple[Prompt, str]]) -> Batch:
    """Return prompts (text or chat messages) and responses as one batch; eos is appended to each response.

    Raises ValueError for the first text with a token unknown to the tokenizer.
    """
    prompts = encode_all(tokenizer, [prompt for prompt, _ in examples])
    solutions = [response for _, response in examples]
    places = [f"solution {quoted(solution)}" for solution in solutions]
    bare = token_ids(tokenizer, solutions, places, special=False, fix="change the row, or take another model.path")
    responses = [[*ids, tokenizer.eos_token_id] for ids in bare]
    return Batch(
        torch.tensor([token for pair in zip(prompts, responses, strict=True) for ids in pair for token in ids]),
        torch.tensor([len(ids) for ids in prompts]),
        torch.tensor([len(ids) for ids in responses]),
    )
