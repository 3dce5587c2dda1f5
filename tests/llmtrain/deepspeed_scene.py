"""What ranks of the DeepSpeed tests train: small models, and experience that they hold unequal parts of."""

from dataclasses import replace

import torch

from entrostat import get_advantage
from llmtrain.policy.lora import ADAPTER, adapter_weights, attach, layers, whole_weights
from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import Policy
from llmtrain.sequences.batch import Batch
from llmtrain.settings.config import EngineConfig, ModelConfig, OptimConfig
from llmtrain.training.learner import Experience, Learner

GROUPS, SAMPLES, VOCAB = 6, 4, 50
BUDGET = 200
"""Tokens of a micro-batch: several for a rank that holds most, one or none for others."""
OPTIM = OptimConfig(lr=1e-3, weight_decay=0.1, warmup_steps=2, max_grad_norm=0, micro_batch_tokens=BUDGET)
CLIPPED = replace(OptimConfig(**vars(OPTIM)), max_grad_norm=0.05)
EDITED = replace(CLIPPED, lr=3e-3, betas=(0.5, 0.6), weight_decay=0.5)
OWNERS = {1: [0] * 6, 2: [0, 0, 0, 0, 0, 1], 4: [0, 0, 0, 1, 1, 2]}
"""Which rank holds each group: token counts differ, and of 4 ranks the last holds none."""
PARTITIONED = {
    "zero_optimization": {
        "stage3_param_persistence_threshold": 0,
        "stage3_max_live_parameters": 0,
        "stage3_max_reuse_distance": 0,
        "stage3_prefetch_bucket_size": 0,
    }
}
"""So that ZeRO-3 treats the small weights of these models as it treats large ones."""
STAGES = {f"zero{stage}": EngineConfig(name="deepspeed", zero_stage=stage, deepspeed=PARTITIONED) for stage in range(4)}
OPTIONS = {
    "offload2": replace(STAGES["zero2"], offload_optimizer=True),
    "offload3": replace(STAGES["zero3"], offload_optimizer=True, offload_param=True),
    "checkpointed2": replace(STAGES["zero2"], gradient_checkpointing=True),
    "checkpointed3": replace(STAGES["zero3"], gradient_checkpointing=True),
}
SMALL_BUCKETS = {"zero_optimization": {**PARTITIONED["zero_optimization"], "reduce_bucket_size": 10_000}}
"""So that buckets, which do not grow with a large model, do not count."""
BF16 = {f"bf16-{stage}": replace(STAGES[f"zero{stage}"], bf16=True) for stage in (1, 2, 3)}
LORA = ModelConfig(lora_rank=4, lora_alpha=6)


def policy_of(config: EngineConfig = EngineConfig(), lora: bool = False) -> Policy:  # noqa: B008
    """A model with random weights, the same in every call. lora: low-rank updates are trained, and are not 0."""
    model = build_tiny(VOCAB, hidden=32, layers=2, heads=2, kv_heads=2, intermediate=64, seed=0).train()
    if lora:
        attach(model, LORA, seed=0)
        generator = torch.Generator().manual_seed(5)
        for _, layer in layers(model):
            torch.nn.init.normal_(layer.lora_B[ADAPTER].weight, std=0.1, generator=generator)
    if config.gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return Policy(model)


def experience_of(policy: Policy) -> Experience:
    """Random sequences of very different lengths, whose rollout policy differs a little from `policy`."""
    generator = torch.Generator().manual_seed(3)
    count = GROUPS * SAMPLES
    prompts = torch.randint(2, 6, (count,), generator=generator)
    responses = torch.randint(1, 30, (count,), generator=generator)
    ids = torch.randint(2, VOCAB, (int((prompts + responses).sum()),), generator=generator)
    batch = Batch(ids, prompts, responses)
    stats = policy.all_stats(batch, BUDGET)
    moved = 0.1 * torch.randn(len(stats.logp), generator=generator)
    group = torch.arange(count) // SAMPLES
    reward = torch.rand(count, generator=generator)
    reward[group == 1] = 0.5  # a group without a signal
    advantage = get_advantage("grpo")(reward, group)
    return Experience.of(batch, stats._replace(logp=stats.logp + moved), reward, advantage, group, torch.arange(count))


def part_of(experience: Experience, ranks) -> Experience:
    owner = torch.tensor(OWNERS[ranks.size])[experience.group]
    return experience.select((owner == ranks.rank).nonzero()[:, 0])


def step(learner: Learner, experience: Experience) -> dict[str, float]:
    """One update of the whole experience; the policy's statistics are computed anew."""
    now = learner.policy.all_stats(experience.batch, BUDGET, learner.engine.ranks)
    plan = learner.controller.plan(experience.tokens(now), learner.engine.ranks.reduce, seed=1, step=2)
    return learner.optimize(experience, plan)


def flat(weights) -> torch.Tensor:
    return torch.cat([weight.float().flatten() for _, weight in weights])


def weights(engine, policy: Policy) -> torch.Tensor:
    return flat(whole_weights(policy.model, engine.whole))


def adapter(engine, policy: Policy) -> torch.Tensor:
    return flat(adapter_weights(policy.model, engine.whole))


def moments(engine, policy: Policy) -> torch.Tensor:
    """First moments of AdamW after one step, divided by 1 − β₁: the gradient."""
    from deepspeed.utils import safe_get_full_optimizer_state

    found = []
    for p in policy.model.parameters():
        if not p.requires_grad:
            continue
        state = engine.optimizer.state.get(p)
        found.append(safe_get_full_optimizer_state(p, "exp_avg") if state is None else state["exp_avg"])
    return torch.cat([x.detach().float().flatten() for x in found]) / (1 - OPTIM.betas[0])
