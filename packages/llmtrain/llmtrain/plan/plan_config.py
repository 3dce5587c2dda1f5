"""Configuration of a plan. Keys are named as in the trainer and verl. Torch-free."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from entrostat.settings.field_types import check_fields

Amount = Annotated[int, "[1, 1e15]"]
AmountOrZero = Annotated[int, "[0, 1e15]"]
Change = dict[str, Any]
"""Keys and their new values."""


@dataclass(frozen=True, kw_only=True)
class PlanConfig:
    """Memory, time and cost of a run of RLVR on a cluster, estimated without a GPU."""

    model: str = "Qwen3-8B-Base"
    """Model name, or a local folder with a config.json."""
    gpu: str = "h100"
    """GPU type: a100, h100, h200 or h20."""
    gpus: Amount = 8
    """Total number of GPUs."""
    gpus_per_node: Amount = 8
    """GPUs per node."""

    prompts: Amount = 512
    """Prompts per rollout step (verl: train_batch_size)."""
    n: Annotated[int, "[2, 1e15]"] = 8
    """Responses per prompt."""
    mini_batch_size: Amount = 512
    """Prompts per optimizer step (verl: ppo_mini_batch_size); times n must be a multiple of the trainer's ranks."""
    ppo_epochs: Amount = 1
    """Passes over each rollout."""
    steps: Amount = 200
    """Rollout steps."""
    partial_tokens: AmountOrZero = 0
    """Upper limit for a response's tokens in a rollout step; longer ones go on in the next one under new weights. 0:
    a step waits for its longest response."""
    max_prompt_length: Amount = 1024
    """Longest prompt, in tokens."""
    max_response_length: Amount = 8192
    """Longest response, in tokens."""
    max_positions: Annotated[int | None, "[1, 1e15]"] = None
    """Longest sequence that the model is set to take, in tokens. None: max_position_embeddings of its config.json."""
    mean_prompt_length: Amount = 160
    """Mean prompt, in tokens. The default is DAPO-Math-17k's 462 characters per prompt at about three per token."""
    mean_response_length: Annotated[int | None, "[1, 1e15]"] = None
    """Mean response, in tokens, the most important number. None: a quarter of the longest."""
    oversampling: Annotated[float, "[1, 1e15]"] = 1.0
    """Responses generated per trained response; dynamic sampling replaces groups that are all right or all wrong."""
    live_share: Annotated[float, "(0, 1]"] = 1.0
    """Share of the responses with nonzero advantage; updates skip the others."""
    stats: Literal["rollout", "fresh"] = "rollout"
    """Statistics for controllers in later mini-batches: rollout, or fresh (one more forward pass)."""
    reference_model: bool = False
    """Use a reference policy (kl_ref): adds its weights and a forward pass."""
    reward_model: bool = False
    """Train PRIME's reward model too: adds the policy's memory again and a reference policy."""

    zero_stage: Annotated[int, "[0, 3]"] = 2
    """DeepSpeed ZeRO stage: 0 shards nothing, 1 the optimizer, 2 also gradients, 3 also weights."""
    gradient_checkpointing: bool = True
    """Keep only the input of each layer, and recompute the rest in the backward pass."""
    micro_batch_tokens: Amount = 16384
    """Tokens per forward pass on a GPU (verl: ppo_max_token_len_per_gpu)."""
    offload_optimizer: bool = False
    """Keep optimizer states and gradients on the host."""
    offload_param: bool = False
    """Keep weights on the host too, and fetch them layer by layer; ZeRO 3 only."""

    colocated: bool = True
    """Trainer and rollout engines take turns on the same GPUs. False: each has its own GPUs."""
    rollout_gpus: AmountOrZero = 0
    """GPUs of the rollout engines if not colocated. 0: half of all GPUs."""
    staleness: AmountOrZero = 0
    """Steps that rollouts may lag behind if not colocated; from 1 on, rollout and training overlap."""
    tensor_model_parallel_size: Amount = 1
    """GPUs per rollout engine."""
    gpu_memory_utilization: Annotated[float | None, "(0, 1]"] = None
    """Share of a GPU for the engine's weights and KV cache, as in vLLM. None: the free share, at most 0.9."""
    max_num_seqs: Amount = 256
    """Upper limit for responses that an engine decodes at once, as in vLLM."""
    store_gb_per_s: Annotated[float, "(0, 1e15]"] = 1.4
    """GB/s of weights through Ray's object store, which a staleness above 1 needs. The default was measured on an AMD
    EPYC without a GPU; `llmtrain doctor` measures yours."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def asks_reference(self) -> bool:
        return self.reference_model or self.reward_model

    @property
    def mean_response(self) -> int:
        """Mean response in tokens."""
        return self.mean_response_length or max(self.max_response_length // 4, 1)

    @property
    def weight_sync(self) -> str:
        """Weight sync of the run: within each GPU (ipc) if colocated, or else a broadcast (nccl).

        Both would stall engines that work ahead with a staleness above 1.
        """
        if self.staleness > 1:
            return "object"
        return "ipc" if self.colocated else "nccl"


def in_words(change: Change) -> str:
    """Return the change as key=value pairs for --set."""
    words = {None: "null", True: "true", False: "false"}
    return " ".join(f"{k}={words[v] if v is None or isinstance(v, bool) else v}" for k, v in change.items())
