"""Time of the updates of a rollout step, by part.

A pass forward costs 2 FLOP a parameter and token, backward 4, recomputation 2 more; causal attention over a sequence of
s tokens costs 2·s²·width a layer forward. The fused head makes its gradient in the forward pass: 6, never recomputed.
PRIME's reward model reads each response once, then learns from it, where the head makes the logits twice: 8.
"""

from .architecture import BF16
from .derived import Layout
from .efficiency import BACKWARD_ATTENTION, BANDWIDTH_SHARE, HOST_BANDWIDTH, LINK_SHARE
from .memory import SUM

ADAM_BYTES = 28
"""Bytes read and written for a parameter in a step of AdamW: fp32 weight and moments both ways, gradient, weight."""


def compute_seconds(layout: Layout) -> dict[str, float]:
    """Arithmetic of a rollout step on each rank."""
    config, model = layout.config, layout.model
    body = 2 * model.body_matmul * layout.tokens
    head = 2 * model.head_params * layout.sequences * config.mean_response
    attention = 2 * layout.mean_square_sequence * model.q_width * model.layers * layout.sequences
    forward = body + head + attention
    trained = config.live_share * config.ppo_epochs
    again = 1 if config.gradient_checkpointing else 0
    work = {
        "log-probabilities of the rollout": forward,
        "log-probabilities of the reference": forward * config.asks_reference,
        "reward model": (2 * forward + (2 + again) * body + (again + BACKWARD_ATTENTION) * attention + 3 * head)
        * config.reward_model,
        "fresh statistics": forward
        * config.ppo_epochs
        * (layout.updates - 1)
        / layout.updates
        * (config.stats == "fresh"),
        "forward and backward": 3 * body * trained,
        "recomputation": body * again * trained,
        "attention": attention * (1 + again + BACKWARD_ATTENTION) * trained,
        "output layer": 3 * head * trained,
    }
    rate = layout.ranks * layout.gpu.flops * layout.gpu.train_utilisation
    return {part: flops / rate for part, flops in work.items() if flops}


def exchange_seconds(layout: Layout, compute: float) -> float:
    """Communication of a rollout step that `compute` seconds of arithmetic do not hide.

    Gradients are exchanged by ZeRO 0 and 1 once an update, by 2 in every micro-batch, all after the arithmetic; by 3 in
    every micro-batch beside it, and weights are gathered there as well.
    """
    config, ranks, stage = layout.config, layout.ranks, layout.config.zero_stage
    gather = BF16 * layout.model.params * (ranks - 1) / ranks / link(layout)
    reduce = gather * SUM / BF16  # gradients travel in fp32; below stage 3 all ranks get all sums
    whole = layout.passes(layout.sequences / ranks)  # over all responses
    micro_batches = layout.updates * layout.micro_batches + whole * config.reward_model
    updates = layout.updates + config.reward_model
    if stage < 2:
        return (2 * reduce + gather * stage) * updates
    if stage == 2:
        return 2 * reduce * micro_batches + gather * updates
    passes = 2 * micro_batches + whole * (1 + config.asks_reference + config.reward_model)
    passes += (layout.updates - 1) * layout.passes(layout.sequences_per_rank) * (config.stats == "fresh")
    fetch = BF16 * layout.model.params / ranks / (layout.gpu.pcie * LINK_SHARE) if config.offload_param else 0.0
    twice = 1 + layout.model.tied * layout.model.head_params / layout.model.params  # embedding, and output layer
    return max(passes * (gather + fetch) * twice + micro_batches * reduce - compute, 0.0)


def optimizer_seconds(layout: Layout) -> float:
    """AdamW of a rollout step, on the GPU or on the host."""
    config, gpu = layout.config, layout.gpu
    params = layout.model.params / (layout.ranks if config.zero_stage else 1)
    updates = layout.updates + config.reward_model
    if config.offload_optimizer:
        moved = 2 * BF16 * params / (gpu.pcie * LINK_SHARE)  # gradients there, weights back
        return updates * (ADAM_BYTES * params / HOST_BANDWIDTH + moved)
    return updates * ADAM_BYTES * params / (gpu.bandwidth * BANDWIDTH_SHARE)


def link(layout: Layout) -> float:
    """Bytes/s of a collective: over the adapters of all GPUs of a node at once where there are several nodes."""
    gpu = layout.gpu
    across = gpu.network * min(layout.config.gpus_per_node, layout.config.gpus)
    return LINK_SHARE * (gpu.nvlink if layout.nodes == 1 else min(gpu.nvlink, across))
