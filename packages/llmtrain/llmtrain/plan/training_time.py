"""Time of the updates of a rollout step, by part.

A forward pass costs 2 FLOP per parameter and token, backward 4, recomputation 2 more; causal attention over a sequence
of s tokens costs 2·s²·width per layer forward. The fused head computes its gradient in the forward pass: 6, never
recomputed. PRIME's reward model scores each response once, then trains on it; its head computes the logits twice: 8.
"""

from .architecture import BF16
from .derived import Layout
from .efficiency import BACKWARD_ATTENTION, BANDWIDTH_SHARE, HOST_BANDWIDTH, LINK_SHARE
from .memory import SUM

ADAM_BYTES = 28
"""Bytes per parameter in a step of AdamW: fp32 weight and moments read and written, gradient read, weight written."""


def compute_seconds(layout: Layout) -> dict[str, float]:
    """Return the seconds of arithmetic per rollout step on each rank, by part."""
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
    """Return the seconds of communication per rollout step that `compute` seconds of arithmetic do not hide.

    ZeRO 0 and 1 exchange gradients once per update and 2 in every micro-batch, all without overlap. ZeRO 3 exchanges
    gradients and gathers weights in every micro-batch, overlapping with arithmetic.
    """
    config, ranks, stage = layout.config, layout.ranks, layout.config.zero_stage
    gather = BF16 * layout.model.params * (ranks - 1) / ranks / link(layout)
    reduce = gather * SUM / BF16  # gradients are sent in fp32; below stage 3 all ranks receive all sums
    whole = layout.passes(layout.sequences / ranks)  # passes over all responses
    micro_batches = layout.updates * layout.micro_batches + whole * config.reward_model
    updates = layout.updates + config.reward_model
    if stage < 2:
        return (2 * reduce + gather * stage) * updates
    if stage == 2:
        return 2 * reduce * micro_batches + gather * updates
    passes = 2 * micro_batches + whole * (1 + config.asks_reference + config.reward_model)
    passes += (layout.updates - 1) * layout.passes(layout.sequences_per_rank) * (config.stats == "fresh")
    fetch = BF16 * layout.model.params / ranks / (layout.gpu.pcie * LINK_SHARE) if config.offload_param else 0.0
    twice = 1 + layout.model.tied * layout.model.head_params / layout.model.params  # embedding and output layer
    return max(passes * (gather + fetch) * twice + micro_batches * reduce - compute, 0.0)


def optimizer_seconds(layout: Layout) -> float:
    """Return the seconds of AdamW per rollout step, on the GPU or on the host."""
    config, gpu = layout.config, layout.gpu
    params = layout.model.params / (layout.ranks if config.zero_stage else 1)
    updates = layout.updates + config.reward_model
    if config.offload_optimizer:
        moved = 2 * BF16 * params / (gpu.pcie * LINK_SHARE)  # gradients to the host, weights back
        return updates * (ADAM_BYTES * params / HOST_BANDWIDTH + moved)
    return updates * ADAM_BYTES * params / (gpu.bandwidth * BANDWIDTH_SHARE)


def link(layout: Layout) -> float:
    """Return the bandwidth of a collective (bytes/s); with several nodes it uses all adapters of a node at once."""
    gpu = layout.gpu
    across = gpu.network * min(layout.config.gpus_per_node, layout.config.gpus)
    return LINK_SHARE * (gpu.nvlink if layout.nodes == 1 else min(gpu.nvlink, across))
