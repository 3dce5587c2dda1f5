"""Memory of a GPU by part, in bytes, during training and rollout.

Each parameter takes 2 bytes for its weight, 12 for the optimizer (fp32 weight and two moments), as in the ZeRO paper,
and 4 for its gradient, which is summed in fp32. Stage 1 shards the optimizer over the ranks, 2 also gradients, 3 also
weights.
"""

from dataclasses import dataclass
from functools import cached_property

from .architecture import BF16, Architecture
from .derived import Layout
from .efficiency import (
    BATCHED_TOKENS,
    GRADIENT_BUCKET_BYTES,
    HEAD_BUFFERS,
    HEAD_CHUNK_BYTES,
    HEAD_CHUNK_TOKENS,
    MOST_UTILIZATION,
    RESERVED_BYTES,
)
from .gpu import GIB

OPTIMIZER = 12
"""Optimizer bytes per parameter."""
SUM = 4
"""Bytes of the summed gradient per parameter."""
Parts = dict[str, float]
"""Bytes by name."""


@dataclass(frozen=True)
class Memory:
    """Memory use of a GPU."""

    layout: Layout

    @cached_property
    def training(self) -> Parts:
        """Memory parts during training."""
        tokens = self.layout.micro_batch_tokens
        return self.state | {
            "activations": activations(self.layout.model, tokens, self.layout.config.gradient_checkpointing),
            "output layer": head(self.layout.model, tokens),
            "reserved": RESERVED_BYTES,
        }

    @cached_property
    def rollout(self) -> Parts:
        """Memory parts during rollout, including those that a colocated trainer keeps."""
        return self.beside_engine | {
            "engine weights": self.engine_weights,
            "engine activations": self.engine_activations,
            "KV cache": self.kv_cache,
        }

    @cached_property
    def state(self) -> Parts:
        """Weights, gradients and optimizer of all trained models on a trainer rank."""
        config, model, ranks = self.layout.config, self.layout.model, self.layout.ranks
        params, stage = self.learning * model.params, config.zero_stage
        weights = BF16 * params / (ranks if stage == 3 else 1)
        gradients = SUM * params / (ranks if stage >= 2 else 1)
        optimizer = OPTIMIZER * params / (ranks if stage >= 1 else 1)
        parts = {
            "weights": 0.0 if config.offload_param else weights,
            "gradients": min(gradients, GRADIENT_BUCKET_BYTES) if config.offload_optimizer else gradients,
            "optimizer": 0.0 if config.offload_optimizer else optimizer,
        }
        if stage < 2:  # gradients of a pass are added to the sums after its end
            parts["gradients of a pass"] = BF16 * params
        if stage == 3 and (ranks > 1 or config.offload_param):  # the current layer, the next one, the output layer
            parts["gathered weights"] = BF16 * (2 * model.layer_params + model.head_params)
        if config.asks_reference:
            parts["reference weights"] = parts["weights"] / self.learning
        return parts

    @property
    def learning(self) -> int:
        """Number of trained models: the policy, and PRIME's reward model."""
        return 1 + self.layout.config.reward_model

    @cached_property
    def host(self) -> float:
        """Bytes of offloaded state on a node's host."""
        config, params = self.layout.config, self.layout.model.params
        share = min(config.gpus_per_node, self.layout.ranks) / self.layout.ranks
        models = self.learning + config.asks_reference
        bytes_each = (OPTIMIZER + SUM) * config.offload_optimizer * self.learning + BF16 * config.offload_param * models
        return share * params * bytes_each

    @property
    def loading(self) -> float:
        """Bytes on a node's host while its ranks read the model: all map the same bf16 file."""
        return BF16 * self.layout.model.params

    @cached_property
    def beside_engine(self) -> Parts:
        """Memory parts next to the engine. Only ZeRO 2 releases all gradient memory after a step."""
        config = self.layout.config
        if not config.colocated:
            return {"reserved": RESERVED_BYTES}
        gone = {"gradients of a pass", "gathered weights"} | ({"gradients"} if config.zero_stage == 2 else set())
        return {k: v for k, v in self.state.items() if k not in gone} | {"reserved": RESERVED_BYTES}

    @property
    def engine_weights(self) -> float:
        return BF16 * self.layout.model.params / self.layout.config.tensor_model_parallel_size

    @property
    def engine_activations(self) -> float:
        """Bytes of a prefill of BATCHED_TOKENS, and of a decode step's fp32 logits and probabilities."""
        config, model = self.layout.config, self.layout.model
        prefill = BATCHED_TOKENS * (4 * model.hidden + (model.q_width + 2 * model.kv_width + 3 * model.intermediate))
        logits = 2 * 4 * min(config.max_num_seqs, self.layout.sequences_per_engine) * model.vocab
        return BF16 * prefill / config.tensor_model_parallel_size + logits

    @property
    def utilization(self) -> float:
        """Engine's share of GPU memory: as configured, or the free share."""
        free = 1 - sum(self.beside_engine.values()) / self.layout.gpu.memory
        return self.layout.config.gpu_memory_utilization or max(min(free, MOST_UTILIZATION), 0.0)

    @property
    def kv_cache(self) -> float:
        left = self.utilization * self.layout.gpu.memory - self.engine_weights - self.engine_activations
        return max(left, 0.0)

    @property
    def kv_tokens(self) -> int:
        """Tokens that fit into an engine's KV cache."""
        return int(self.kv_cache // self.layout.model.kv_bytes(self.layout.config.tensor_model_parallel_size))

    @property
    def problem(self) -> str:
        """Error message about the first part that does not fit; empty if everything fits."""
        layout = self.layout
        phases = [("training", self.training), ("rollout", self.rollout)]
        for phase, parts in phases:
            need = sum(parts.values())
            if need > layout.gpu.memory * (1 + 1e-9):
                part = max(parts, key=lambda k: parts[k])
                return (
                    f"{layout.model.name} needs {need / GIB:.1f} GiB in {phase} and an {layout.gpu.name} has "
                    f"{layout.gpu.memory / GIB:.1f}; the largest part is {part} ({parts[part] / GIB:.1f} GiB)"
                )
        if self.kv_tokens < layout.longest_sequence:
            return (
                f"the KV cache of an engine on {layout.config.tensor_model_parallel_size} {layout.gpu.name} holds "
                f"{self.kv_tokens:,} tokens and the longest sequence has {layout.longest_sequence:,}"
            )
        return ""


def activations(model: Architecture, tokens: int, checkpointing: bool) -> float:
    """Return the bytes kept for the backward pass of a micro-batch.

    With checkpointing: the bf16 input of each layer, and the activations of one layer with their gradients.
    """
    boundary = BF16 * model.hidden
    inside = layer_activations(model)
    each = model.layers * boundary + 2 * inside if checkpointing else model.layers * (boundary + inside)
    return tokens * (each + 3 * boundary)  # the last norm: its input in fp32, its output


def layer_activations(model: Architecture) -> float:
    """Return the bytes per token inside a layer, without attention matrix, as kept by transformers' Qwen2 and Qwen3."""
    norms = 2 * model.hidden + (model.q_width + model.kv_width if model.qk_norm else 0)
    attention = 2 * (model.q_width + model.kv_width) + model.kv_width + model.q_width + model.hidden
    mlp = 4 * model.intermediate  # gate, its activation, up, their product
    return (4 + BF16) * norms + BF16 * (attention + mlp)  # a norm keeps its input in fp32 and its output


def head(model: Architecture, tokens: int, chunk_bytes: int = HEAD_CHUNK_BYTES, weight_bytes: int = BF16) -> float:
    """Return the bytes of the fused head: fp32 logits of a chunk, fp32 weight gradient, hidden-state gradient."""
    chunk = min(max(chunk_bytes // (4 * model.vocab), 16), HEAD_CHUNK_TOKENS, tokens)
    rounded = 0 if weight_bytes == 4 else weight_bytes  # copy of the gradient in the weight's dtype
    return (
        HEAD_BUFFERS * 4 * chunk * model.vocab
        + (4 + rounded) * model.head_params
        + weight_bytes * tokens * model.hidden
    )
