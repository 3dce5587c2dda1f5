"""Every number that follows from a configuration: ranks, sequences, micro-batches. Raises where a division fails."""

import math
from dataclasses import dataclass

from .architecture import Architecture, get_architecture
from .config import PlanConfig
from .gpu import GPU, get_gpu
from .lengths import Lengths


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A configuration, its model and GPU, and what follows from them."""

    config: PlanConfig
    model: Architecture
    gpu: GPU
    lengths: Lengths

    @property
    def nodes(self) -> int:
        return math.ceil(self.config.gpus / self.config.gpus_per_node)

    @property
    def rollout_gpus(self) -> int:
        """GPUs that hold a rollout engine."""
        if self.config.colocated:
            return self.config.gpus
        return self.config.rollout_gpus or self.config.gpus // 2

    @property
    def ranks(self) -> int:
        """Ranks of the trainer, one a GPU."""
        return self.config.gpus if self.config.colocated else self.config.gpus - self.rollout_gpus

    @property
    def engines(self) -> int:
        return self.rollout_gpus // self.config.tensor_model_parallel_size

    @property
    def sequences(self) -> int:
        """Responses trained on in a rollout step: the global batch."""
        return self.config.prompts * self.config.n

    @property
    def generated(self) -> int:
        """Responses generated in a rollout step."""
        return math.ceil(self.sequences * self.config.oversampling)

    @property
    def sequences_per_engine(self) -> int:
        return math.ceil(self.generated / self.engines)

    @property
    def updates(self) -> int:
        """Optimizer steps in a rollout step."""
        return self.config.prompts // self.config.mini_batch_size * self.config.ppo_epochs

    @property
    def sequences_per_update(self) -> int:
        """Responses of an optimizer step, over all ranks."""
        return self.config.mini_batch_size * self.config.n

    @property
    def sequences_per_rank(self) -> int:
        """Responses of an optimizer step on a rank."""
        return self.sequences_per_update // self.ranks

    @property
    def mean_sequence(self) -> int:
        """Mean tokens of prompt and response."""
        return self.config.mean_prompt_length + self.config.mean_response

    @property
    def longest_sequence(self) -> int:
        """Tokens of the longest prompt and response."""
        return self.config.max_prompt_length + self.config.max_response_length

    @property
    def micro_batch_tokens(self) -> int:
        """Tokens of a full micro-batch: the budget, or the longest sequence where that is longer."""
        return max(self.config.micro_batch_tokens, self.longest_sequence)

    @property
    def micro_batches(self) -> int:
        """Micro-batches of an optimizer step on a rank: the gradient accumulation."""
        tokens = self.sequences_per_rank * self.mean_sequence * self.config.live_share
        return max(math.ceil(tokens / self.config.micro_batch_tokens), 1)

    @property
    def tokens(self) -> int:
        """Tokens of a rollout step that are trained on, prompts included."""
        return self.sequences * self.mean_sequence

    @property
    def response_tokens(self) -> int:
        """Tokens generated in a rollout step."""
        return self.generated * self.config.mean_response

    @property
    def mean_square_sequence(self) -> float:
        """E[(prompt + response)²], prompts taken to be of mean length: what attention goes with."""
        prompt = self.config.mean_prompt_length
        return prompt**2 + 2 * prompt * self.config.mean_response + self.lengths.mean_square


def lay_out(config: PlanConfig) -> Layout:
    """The layout of a configuration. Raises ValueError with the fix on what does not divide or cannot be."""
    lengths = Lengths(config.mean_response, config.max_response_length)
    layout = Layout(config=config, model=get_architecture(config.model), gpu=get_gpu(config.gpu), lengths=lengths)
    _check_cluster(config)
    _check_engine(layout)
    _check_batch(layout)
    _check_offload(config)
    return layout


def _check_cluster(config: PlanConfig) -> None:
    per_node = config.gpus_per_node
    if config.gpus > per_node and config.gpus % per_node:
        fits = config.gpus // per_node * per_node
        raise ValueError(
            f"gpus {config.gpus} are not whole nodes of gpus_per_node {per_node}: use {fits} or {fits + per_node}"
        )
    if config.colocated:
        if config.staleness:
            raise ValueError("staleness needs rollout engines of their own: set colocated=false or staleness=0")
        if config.rollout_gpus:
            raise ValueError("rollout_gpus is for engines with GPUs of their own: set colocated=false or leave it out")
    elif not (config.rollout_gpus or config.gpus // 2) or config.rollout_gpus >= config.gpus:
        raise ValueError(
            f"colocated=false leaves the trainer or the engines without a GPU of {config.gpus}: "
            "use more gpus, fewer rollout_gpus, or colocated=true"
        )


def _check_engine(layout: Layout) -> None:
    config, model = layout.config, layout.model
    size = config.tensor_model_parallel_size
    allowed = [
        x
        for x in range(1, config.gpus_per_node + 1)
        if not layout.rollout_gpus % x
        and not model.heads % x
        and (not model.kv_heads % x or not x % model.kv_heads)
        and not config.gpus_per_node % x
    ]
    if size not in allowed:
        raise ValueError(
            f"tensor_model_parallel_size {size} must divide the {layout.rollout_gpus} rollout GPUs, the "
            f"{config.gpus_per_node} of a node, {model.heads} heads, and go with {model.kv_heads} KV heads: "
            f"use {_or(allowed)}"
        )
    room = model.max_positions - config.max_prompt_length
    if room < 2:
        half = model.max_positions // 2
        raise ValueError(
            f"max_prompt_length {config.max_prompt_length:,} leaves no room for responses in the "
            f"{model.max_positions:,} positions of {model.name}: "
            f"use max_prompt_length={half} max_response_length={half}"
        )
    if config.max_response_length > room:
        raise ValueError(
            f"max_prompt_length + max_response_length = {layout.longest_sequence:,} is beyond the "
            f"{model.max_positions:,} positions of {model.name}: use max_response_length={room}"
        )


def _check_batch(layout: Layout) -> None:
    config, ranks = layout.config, layout.ranks
    if config.prompts % config.mini_batch_size:
        near = _nearest_divisors(config.prompts, config.mini_batch_size)
        raise ValueError(
            f"mini_batch_size {config.mini_batch_size} must divide prompts {config.prompts}: use {_or(near)}"
        )
    if layout.sequences_per_update % ranks:
        step = ranks // math.gcd(ranks, config.n)
        below = config.mini_batch_size // step * step
        fixes = [x for x in (below, below + step) if x > 0 and config.prompts % x == 0]
        gpus = max(x for x in range(1, ranks + 1) if layout.sequences_per_update % x == 0)
        fix = f"use mini_batch_size={_or(fixes)}, or" if fixes else "use"
        raise ValueError(
            f"mini_batch_size {config.mini_batch_size} × n {config.n} = {layout.sequences_per_update} responses "
            f"do not divide over {ranks} ranks: {fix} {gpus} GPUs for the trainer"
        )
    if layout.engines > layout.generated:
        raise ValueError(
            f"{layout.engines} rollout engines for {layout.generated} responses: raise prompts, or use "
            f"tensor_model_parallel_size={config.tensor_model_parallel_size * 2}"
        )


def _check_offload(config: PlanConfig) -> None:
    if config.offload_param and (config.zero_stage < 3 or not config.offload_optimizer):
        raise ValueError(
            "offload_param needs ZeRO 3 and the optimizer off the GPU: zero_stage=3 offload_optimizer=true"
        )
    if config.offload_optimizer and config.zero_stage < 1:
        raise ValueError("offload_optimizer needs ZeRO: use zero_stage=2")


def _nearest_divisors(whole: int, near: int) -> list[int]:
    divisors = [x for x in range(1, whole + 1) if whole % x == 0]
    below, above = [x for x in divisors if x < near], [x for x in divisors if x > near]
    return below[-1:] + above[:1]


def _or(values: list[int]) -> str:
    return " or ".join([", ".join(map(str, values[:-1])), str(values[-1])] if len(values) > 1 else map(str, values))
