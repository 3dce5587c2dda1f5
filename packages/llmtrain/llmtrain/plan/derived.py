"""Numbers derived from a configuration: ranks, sequences, micro-batches. Sizes that do not divide raise ValueError."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from .architecture import Architecture, get_architecture
from .gpu import GPU, get_gpu
from .lengths import Lengths
from .plan_config import Change, PlanConfig, in_words

MOST_RESPONSES = 1 << 18
"""Upper limit for responses per rollout step, so that their simulation takes only seconds."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Configuration with its model and GPU, and the numbers derived from them."""

    config: PlanConfig
    model: Architecture
    gpu: GPU
    lengths: Lengths

    @property
    def nodes(self) -> int:
        return math.ceil(self.config.gpus / self.config.gpus_per_node)

    @property
    def rollout_gpus(self) -> int:
        """GPUs of the rollout engines."""
        if self.config.colocated:
            return self.config.gpus
        return self.config.rollout_gpus or self.config.gpus // 2

    @property
    def ranks(self) -> int:
        """Ranks of the trainer, one per GPU."""
        return self.config.gpus if self.config.colocated else self.config.gpus - self.rollout_gpus

    @property
    def engines(self) -> int:
        return self.rollout_gpus // self.config.tensor_model_parallel_size

    @property
    def sequences(self) -> int:
        """Responses that a rollout step trains on: the global batch."""
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
        """Responses per optimizer step, over all ranks."""
        return self.config.mini_batch_size * self.config.n

    @property
    def pieces(self) -> int:
        """Parts of a group that can go to different ranks: n responses, or 1 under PRIME, which needs whole groups."""
        return 1 if self.config.reward_model else self.config.n

    @property
    def sequences_per_rank(self) -> int:
        """Responses per optimizer step and rank."""
        return self.sequences_per_update // self.ranks

    @property
    def mean_sequence(self) -> int:
        """Mean tokens of a prompt and its response."""
        return self.config.mean_prompt_length + self.config.mean_response

    @property
    def longest_sequence(self) -> int:
        """Tokens of the longest prompt with the longest response."""
        return self.config.max_prompt_length + self.config.max_response_length

    @property
    def micro_batch_tokens(self) -> int:
        """Tokens of a full micro-batch: the budget, or the longest sequence if it is longer."""
        return max(self.config.micro_batch_tokens, self.longest_sequence)

    def passes(self, sequences: float) -> int:
        """Return the micro-batches for `sequences` responses on a rank; at most one each, as responses are not cut."""
        tokens = sequences * self.mean_sequence
        return max(math.ceil(min(tokens / self.config.micro_batch_tokens, sequences)), 1)

    @property
    def micro_batches(self) -> int:
        """Micro-batches per optimizer step and rank: the gradient accumulation."""
        return self.passes(self.sequences_per_rank * self.config.live_share)

    @property
    def tokens(self) -> int:
        """Tokens that a rollout step trains on, prompts included."""
        return self.sequences * self.mean_sequence

    @property
    def response_tokens(self) -> int:
        """Tokens generated in a rollout step."""
        return self.generated * self.config.mean_response

    @property
    def mean_square_sequence(self) -> float:
        """E[(prompt + response)²] with prompts of mean length, proportional to the cost of attention."""
        prompt = self.config.mean_prompt_length
        return prompt**2 + 2 * prompt * self.config.mean_response + self.lengths.mean_square


def lay_out(config: PlanConfig) -> Layout:
    """Return the layout of a configuration. Raises ValueError with the fix if sizes do not divide or conflict."""
    layout = _layout(config)
    if problem := _problem(layout):
        raise ValueError(problem())
    return layout


def divides(config: PlanConfig) -> bool:
    """Return whether a configuration has a valid layout."""
    try:
        return _problem(_layout(config)) is None
    except ValueError:
        return False


def _layout(config: PlanConfig) -> Layout:
    lengths = Lengths(config.mean_response, config.max_response_length)
    model = get_architecture(config.model)
    if config.max_positions:
        model = replace(model, max_positions=config.max_positions)
    return Layout(config=config, model=model, gpu=get_gpu(config.gpu), lengths=lengths)


Problem = Callable[[], str]
"""Function that returns the error message with its fix, called only when needed because fixes are checked too."""


def _problem(layout: Layout) -> Problem | None:
    """Return the first problem of a layout, or None."""
    checks = (_check_cluster, _check_engine, _check_lengths, _check_offload, _check_batch, _check_ranks)
    return next((problem for check in checks if (problem := check(layout))), None)


def _check_cluster(layout: Layout) -> Problem | None:
    config, per_node = layout.config, layout.config.gpus_per_node
    if config.gpus > per_node and config.gpus % per_node:
        nodes = config.gpus // per_node
        whole = [[x * per_node for x in some] for some in (range(nodes, 0, -1), range(nodes + 1, 2 * nodes + 2))]
        words = f"gpus {config.gpus} must be a multiple of gpus_per_node {per_node}: use"
        return lambda: f"{words} {_or(_that_work(config, 'gpus', whole) or [f'gpus={whole[0][0]}'])}"
    if config.colocated:
        if config.staleness:
            fix = (
                "colocated=false or staleness=0" if config.gpus > 1 else "staleness=0, or colocated=false on more GPUs"
            )
            return lambda: f"staleness needs rollout engines on separate GPUs: set {fix}"
        if config.rollout_gpus:
            return lambda: "rollout_gpus needs rollout engines on separate GPUs: set colocated=false or leave it out"
    elif not (config.rollout_gpus or config.gpus // 2) or config.rollout_gpus >= config.gpus:
        return lambda: (
            f"colocated=false with gpus {config.gpus} leaves the trainer or the engines without a GPU: "
            "use more gpus, fewer rollout_gpus, or colocated=true"
        )
    return None


def _check_engine(layout: Layout) -> Problem | None:
    config, model = layout.config, layout.model
    size = config.tensor_model_parallel_size
    allowed = [
        x
        for x in range(1, min(config.gpus_per_node, model.heads) + 1)
        if not layout.rollout_gpus % x
        and not model.heads % x
        and (not model.kv_heads % x or not x % model.kv_heads)
        and not config.gpus_per_node % x
    ]
    if size in allowed:
        return None
    return lambda: (
        f"tensor_model_parallel_size {size} must divide {layout.rollout_gpus} rollout GPUs, "
        f"{config.gpus_per_node} GPUs per node and {model.heads} heads, and fit {model.kv_heads} KV heads: "
        f"use {_or(allowed)}"
    )


def _check_lengths(layout: Layout) -> Problem | None:
    config, model = layout.config, layout.model
    if config.mean_prompt_length > config.max_prompt_length:
        return lambda: (
            f"mean_prompt_length {config.mean_prompt_length:,} exceeds max_prompt_length "
            f"{config.max_prompt_length:,}: use mean_prompt_length={config.max_prompt_length} or less"
        )
    room = model.max_positions - config.max_prompt_length
    if room < 2:
        half = model.max_positions // 2
        return lambda: (
            f"max_prompt_length {config.max_prompt_length:,} leaves no room for responses in the "
            f"{model.max_positions:,} positions of {model.name}: use {_lengths(config, half, half)}"
        )
    if config.max_response_length > room:
        return lambda: (
            f"max_prompt_length + max_response_length = {layout.longest_sequence:,} exceeds the "
            f"{model.max_positions:,} positions of {model.name}: "
            f"use {_lengths(config, config.max_prompt_length, room)}"
        )
    return None


def _lengths(config: PlanConfig, prompt: int, response: int) -> str:
    """Return settings of the longest prompt and response, and of means that exceed them."""
    change: Change = {} if prompt == config.max_prompt_length else {"max_prompt_length": prompt}
    change["max_response_length"] = response
    if config.mean_prompt_length > prompt:
        change["mean_prompt_length"] = prompt
    if config.mean_response >= response:
        change["mean_response_length"] = None
    return in_words(change)


def _check_batch(layout: Layout) -> Problem | None:
    config = layout.config
    if layout.generated > MOST_RESPONSES:
        return lambda: (
            f"prompts {config.prompts:,} × n {config.n:,} × oversampling {config.oversampling:g} exceeds plan's limit "
            f"of {MOST_RESPONSES:,} responses per rollout step: lower prompts or n"
        )
    if config.prompts % config.mini_batch_size:
        return lambda: (
            f"mini_batch_size {config.mini_batch_size} must divide prompts {config.prompts}: "
            f"use {_or(_batches(layout))}"
        )
    if layout.engines > layout.generated:
        return lambda: (
            f"{layout.engines} rollout engines for {layout.generated} responses: raise prompts, or use "
            f"tensor_model_parallel_size={config.tensor_model_parallel_size * 2}"
        )
    return None


def _batches(layout: Layout) -> list[str]:
    """Return mini-batches that divide the prompts, or else more prompts with mini-batches that fit the ranks."""
    config, size = layout.config, layout.config.mini_batch_size
    divisors = [x for x in range(1, config.prompts + 1) if config.prompts % x == 0]
    kinds = [x for x in divisors if x < size][::-1], [x for x in divisors if x > size]
    return _that_work(config, "mini_batch_size", kinds) or [in_words(_more_prompts(layout))]


def _more_prompts(layout: Layout) -> Change:
    """Return the smallest increase of prompts whose mini-batches, no smaller than now, divide over the ranks."""
    config, step = layout.config, _step(layout)
    size = math.ceil(config.mini_batch_size / step) * step
    change: Change = {"prompts": math.ceil(config.prompts / size) * size, "mini_batch_size": size}
    return {key: value for key, value in change.items() if value != getattr(config, key)}


def _step(layout: Layout) -> int:
    """Return the number of prompts of which a mini-batch must be a multiple to divide over the ranks."""
    return layout.ranks // math.gcd(layout.ranks, layout.pieces)


def _that_work(config: PlanConfig, key: str, kinds: Sequence[Sequence[int]]) -> list[str]:
    """Return the first value of each kind with which all sizes divide, as key=value."""
    changes: list[list[Change]] = [[{key: x} for x in kind] for kind in kinds]
    works = (next((change for change in some if divides(replace(config, **change))), None) for some in changes)
    return [in_words(change) for change in works if change]


def _check_ranks(layout: Layout) -> Problem | None:
    """Return a problem unless a mini-batch's responses, or whole groups under PRIME, divide evenly over the ranks."""
    size, ranks, pieces = layout.config.mini_batch_size, layout.ranks, layout.pieces
    if not size * pieces % ranks:
        return None
    return lambda: (
        f"mini_batch_size {size}{f' × n {pieces}' if pieces > 1 else ''} must be a multiple of the {ranks} ranks: "
        f"use {_or([in_words(change) for change in _rank_fixes(layout)])}"
    )


def _rank_fixes(layout: Layout) -> list[Change]:
    """Return fewer ranks, which learn the same, or other mini-batches; more prompts if nothing else helps."""
    config, size, step = layout.config, layout.config.mini_batch_size, _step(layout)
    fewer = [x for x in range(layout.ranks, 0, -1) if size * layout.pieces % x == 0]
    whole = math.ceil(size / step) * step
    apart: Change = {"colocated": False} if config.colocated else {}
    kinds: list[list[Change]] = [
        [{"gpus": x} for x in fewer if config.colocated],
        [apart | {"rollout_gpus": config.gpus - x} for x in fewer],
        [{"mini_batch_size": x} for x in (whole, whole - step) if x],
    ]
    works = ((change for change in kind if divides(replace(config, **change))) for kind in kinds)
    return [change for kind in works for change in islice(kind, 1)] or [_more_prompts(layout)]


def _check_offload(layout: Layout) -> Problem | None:
    config = layout.config
    if config.offload_param and (config.zero_stage < 3 or not config.offload_optimizer):
        return lambda: "offload_param needs ZeRO 3 and an offloaded optimizer: use zero_stage=3 offload_optimizer=true"
    if config.offload_optimizer and config.zero_stage < 1:
        return lambda: "offload_optimizer needs ZeRO: use zero_stage=2"
    return None


def _or(values: Sequence[object]) -> str:
    return " or ".join([", ".join(map(str, values[:-1])), str(values[-1])] if len(values) > 1 else map(str, values))
