"""What a plan is made for. Keys have the trainer's and verl's names; no torch."""

from dataclasses import dataclass
from typing import Any

CAN_BE_ZERO = ("zero_stage", "rollout_gpus", "staleness")
MOST = 1e15
"""Largest number that a key may have."""
Change = dict[str, Any]
"""Keys and their new values."""


@dataclass(frozen=True, kw_only=True)
class PlanConfig:
    """Memory, time and cost of a run of RLVR on a cluster, estimated without touching a GPU."""

    model: str = "Qwen3-8B-Base"
    """A model by name, or a local folder with a config.json."""
    gpu: str = "h100"
    """a100, h100, h200 or h20."""
    gpus: int = 8
    """All GPUs."""
    gpus_per_node: int = 8
    """GPUs of a server."""

    prompts: int = 512
    """Prompts a rollout step (verl: train_batch_size)."""
    n: int = 8
    """Responses to each prompt."""
    mini_batch_size: int = 512
    """Prompts an optimizer step (verl: ppo_mini_batch_size), a multiple of the trainer's ranks."""
    ppo_epochs: int = 1
    """Passes over each rollout."""
    steps: int = 200
    """Rollout steps."""
    max_prompt_length: int = 1024
    """Longest prompt, in tokens."""
    max_response_length: int = 8192
    """Longest response, in tokens."""
    mean_prompt_length: int = 160
    """Mean prompt: DAPO-Math-17k has 462 characters a prompt, here at three a token."""
    mean_response_length: int | None = None
    """Mean response, the number that matters most. None: a quarter of the longest."""
    oversampling: float = 1.0
    """Responses generated for each one trained on; dynamic sampling refills groups that are all right or all wrong."""
    live_share: float = 1.0
    """Share of the responses whose advantage is not zero; the others never reach the model in an update."""
    stats: str = "rollout"
    """Statistics that controllers see in later mini-batches: rollout, or fresh (one more forward pass)."""
    reference_model: bool = False
    """Whether there is a reference policy (kl_ref): its weights and a forward pass."""

    zero_stage: int = 2
    """DeepSpeed's ZeRO: 0 shards nothing, 1 the optimizer, 2 also gradients, 3 also weights."""
    gradient_checkpointing: bool = True
    """Keep only the input of each layer and compute the rest again in the backward pass."""
    micro_batch_tokens: int = 16384
    """Tokens that go through the model at once on a GPU (verl: ppo_max_token_len_per_gpu)."""
    offload_optimizer: bool = False
    """Optimizer states and gradients on the host."""
    offload_param: bool = False
    """Weights on the host too, fetched layer by layer; ZeRO 3 only."""

    colocated: bool = True
    """Trainer and rollout engines take turns on the same GPUs. False: each has its own."""
    rollout_gpus: int = 0
    """GPUs of the rollout engines when not colocated. 0: half of them."""
    staleness: int = 0
    """Steps that rollouts may lag behind when not colocated; from 1 on, rollout and training overlap."""
    tensor_model_parallel_size: int = 1
    """GPUs of a rollout engine."""
    gpu_memory_utilization: float | None = None
    """Share of a GPU for the engine's weights and KV cache, as in vLLM. None: what is free, at most 0.9."""
    max_num_seqs: int = 256
    """Most responses an engine decodes at once, as in vLLM."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                if not abs(value) <= MOST:  # not a number, too
                    raise ValueError(f"{name} must be a finite number of at most {MOST:g}; got {value}")
                if value <= 0 and name not in CAN_BE_ZERO:
                    raise ValueError(f"{name} must be positive; got {value}")
                if value < 0:
                    raise ValueError(f"{name} must not be negative; got {value}")
        if self.n < 2:
            raise ValueError(f"n must be at least 2, or no advantage can be told; got {self.n}")
        if self.zero_stage > 3:
            raise ValueError(f"zero_stage must be 0, 1, 2 or 3; got {self.zero_stage}")
        if self.stats not in ("rollout", "fresh"):
            raise ValueError(f"stats must be rollout or fresh; got {self.stats!r}")
        if self.live_share > 1:
            raise ValueError(f"live_share is a share, at most 1; got {self.live_share}")
        if self.oversampling < 1:
            raise ValueError(f"oversampling must be at least 1; got {self.oversampling}")
        if (self.gpu_memory_utilization or 0) > 1:
            raise ValueError(f"gpu_memory_utilization is a share, at most 1; got {self.gpu_memory_utilization}")

    @property
    def mean_response(self) -> int:
        """Mean response in tokens."""
        return self.mean_response_length or max(self.max_response_length // 4, 1)


def in_words(change: Change) -> str:
    """key=value, as for --set."""
    words = {None: "null", True: "true", False: "false"}
    return " ".join(f"{k}={words[v] if v is None or isinstance(v, bool) else v}" for k, v in change.items())
