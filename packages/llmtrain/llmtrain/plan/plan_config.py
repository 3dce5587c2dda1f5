"""What a plan is made for. Keys have the trainer's and verl's names; no torch."""

from dataclasses import dataclass
from typing import Annotated, Any

from entrostat.allowed import check_fields

Amount = Annotated[int, "[1, 1e15]"]
AmountOrZero = Annotated[int, "[0, 1e15]"]
Change = dict[str, Any]
"""Keys and their new values."""


@dataclass(frozen=True, kw_only=True)
class PlanConfig:
    """Memory, time and cost of a run of RLVR on a cluster, estimated without touching a GPU."""

    model: str = "Qwen3-8B-Base"
    """A model by name, or a local folder with a config.json."""
    gpu: str = "h100"
    """a100, h100, h200 or h20."""
    gpus: Amount = 8
    """All GPUs."""
    gpus_per_node: Amount = 8
    """GPUs of a server."""

    prompts: Amount = 512
    """Prompts a rollout step (verl: train_batch_size)."""
    n: Annotated[int, "[2, 1e15]"] = 8
    """Responses to each prompt."""
    mini_batch_size: Amount = 512
    """Prompts an optimizer step (verl: ppo_mini_batch_size); times n it is a multiple of the trainer's ranks."""
    ppo_epochs: Amount = 1
    """Passes over each rollout."""
    steps: Amount = 200
    """Rollout steps."""
    max_prompt_length: Amount = 1024
    """Longest prompt, in tokens."""
    max_response_length: Amount = 8192
    """Longest response, in tokens."""
    mean_prompt_length: Amount = 160
    """Mean prompt: DAPO-Math-17k has 462 characters a prompt, here at three a token."""
    mean_response_length: Annotated[int | None, "[1, 1e15]"] = None
    """Mean response, the number that matters most. None: a quarter of the longest."""
    oversampling: Annotated[float, "[1, 1e15]"] = 1.0
    """Responses generated for each one trained on; dynamic sampling refills groups that are all right or all wrong."""
    live_share: Annotated[float, "(0, 1]"] = 1.0
    """Share of the responses whose advantage is not zero; the others never reach the model in an update."""
    stats: Annotated[str, ("rollout", "fresh")] = "rollout"
    """Statistics that controllers see in later mini-batches: rollout, or fresh (one more forward pass)."""
    reference_model: bool = False
    """Whether there is a reference policy (kl_ref): its weights and a forward pass."""
    reward_model: bool = False
    """Whether PRIME's reward model learns along: as much memory as the policy, and a reference policy as well."""

    zero_stage: Annotated[int, "[0, 3]"] = 2
    """DeepSpeed's ZeRO: 0 shards nothing, 1 the optimizer, 2 also gradients, 3 also weights."""
    gradient_checkpointing: bool = True
    """Keep only the input of each layer and compute the rest again in the backward pass."""
    micro_batch_tokens: Amount = 16384
    """Tokens that go through the model at once on a GPU (verl: ppo_max_token_len_per_gpu)."""
    offload_optimizer: bool = False
    """Optimizer states and gradients on the host."""
    offload_param: bool = False
    """Weights on the host too, fetched layer by layer; ZeRO 3 only."""

    colocated: bool = True
    """Trainer and rollout engines take turns on the same GPUs. False: each has its own."""
    rollout_gpus: AmountOrZero = 0
    """GPUs of the rollout engines when not colocated. 0: half of them."""
    staleness: AmountOrZero = 0
    """Steps that rollouts may lag behind when not colocated; from 1 on, rollout and training overlap."""
    tensor_model_parallel_size: Amount = 1
    """GPUs of a rollout engine."""
    gpu_memory_utilization: Annotated[float | None, "(0, 1]"] = None
    """Share of a GPU for the engine's weights and KV cache, as in vLLM. None: what is free, at most 0.9."""
    max_num_seqs: Amount = 256
    """Most responses an engine decodes at once, as in vLLM."""

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
        """The trainer's: a broadcast needs GPUs that differ, and would make learners wait for older rollouts."""
        return "object" if self.colocated or self.staleness > 1 else "nccl"


def in_words(change: Change) -> str:
    """key=value, as for --set."""
    words = {None: "null", True: "true", False: "false"}
    return " ".join(f"{k}={words[v] if v is None or isinstance(v, bool) else v}" for k, v in change.items())
