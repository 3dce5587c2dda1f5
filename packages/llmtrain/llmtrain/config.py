"""What a run is: frozen dataclasses, no torch. Read by the CLI as defaults < --preset < --config file < flags.

Keys keep the names people know from verl and TRL.
"""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

ENGINES = ("torch", "deepspeed")
ROLLOUTS = ("hf", "vllm")
TOPOLOGIES = ("local", "ray")
LAYOUTS = ("padded", "packed", "shared")
FORMATS = ("", "boxed", "tags")
POSITIVE = (
    *("steps", "save_every", "nproc", "rollout.prompts", "rollout.max_new_tokens", "rollout.temperature", "eval.k"),
    *("optim.lr", "optim.mini_batch_size", "optim.ppo_epochs", "optim.micro_batch_tokens", "task.train_problems"),
    *("sft.batch_size", "sft.examples", "model.hidden_size", "model.num_layers", "model.num_heads"),
    *("model.intermediate_size", "model.max_position_embeddings", "model.vocab_size"),
)
NOT_NEGATIVE = (
    *("optim.max_grad_norm", "optim.weight_decay", "optim.warmup_steps", "sft.steps", "sft.lr", "eval.every"),
    *("task.test_problems", "threads", "model.lora_rank"),
)
"""Keys of what must be above 0, and of what may be 0."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The policy."""

    ref_path: str | None = None
    """Folder of the reference policy of kl_ref. None: the model that the run starts from."""
    path: str | None = None
    """Folder of a causal language model (weights and tokenizer). None: build a small Qwen2 and warm it up, once."""
    lora_rank: int = 0
    """Rank of low-rank updates (LoRA) that are trained instead of the weights; 0 trains all weights."""
    lora_alpha: float = 32.0
    """Updates are multiplied by lora_alpha / lora_rank."""
    lora_target_modules: tuple[str, ...] = ()
    """Last parts of the names of the layers that get an update, such as q_proj; empty is all linear layers."""
    hidden_size: int = 128
    """Width of the built model."""
    num_layers: int = 4
    """Layers of the built model."""
    num_heads: int = 4
    """Attention heads of the built model."""
    intermediate_size: int = 384
    """Width of the built model's MLP."""
    max_position_embeddings: int = 256
    """Longest prompt and response together of the built model, in tokens."""
    vocab_size: int = 1024
    """Tokens of a model built for questions from files: byte pairs, learnt from them. Countdown takes characters."""


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """A task whose problems are generated, unless data.train_files names files of questions."""

    name: str = "countdown"
    """countdown, or files where data.train_files must not be forgotten."""
    train_problems: int = 2048
    """Problems to train on; generated from `seed`."""
    test_problems: int = 128
    """Held-out problems; none of them is among the training problems."""
    seed: int = 0
    """Seed of the problems."""


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Questions from files, and how they are put to the model."""

    train_files: tuple[str, ...] = ()
    """Questions to train on: parquet as verl writes it, jsonl, folders, or datasets of the HF hub. Empty: the task."""
    val_files: tuple[str, ...] = ()
    """Questions to evaluate on; their repeated rows count as one question."""
    weights: tuple[float, ...] = ()
    """Share of each train file in what is trained on; empty takes every question once an epoch."""
    prompt_key: str = ""
    """Column of the prompt, nested ones as a.b; empty finds prompt, question or problem."""
    answer_key: str = ""
    """Column of the ground truth; empty finds reward_model.ground_truth, ground_truth, answer and the like."""
    skip_bad: bool = False
    """Leave out rows that cannot be read, and count them; without it the first one ends the run."""
    max_prompt_length: int = 1024
    """Longest prompt, in tokens, chat template included; longer ones are left out and counted."""
    as_chat: bool = True
    """Prompts that are plain text become the user's message; false gives them to the model as they stand."""
    chat_template: str = ""
    """File of a Jinja template to use in place of the tokenizer's own."""
    system_prompt: str = ""
    """Said before prompts that have no system message of their own."""
    instruction: str = ""
    """Said after each question, such as "Put your final answer within \\boxed{}."."""
    verifier: str = "math"
    """Who judges: math, exact, regex, countdown, python, or a function as module:function."""
    verifier_workers: int = 2
    """Checks at a time, of each rank."""
    verifier_timeout: float = 5.0
    """Seconds for one check; a response whose check takes longer counts as wrong."""

    def __post_init__(self) -> None:
        if self.weights and len(self.weights) != len(self.train_files):
            raise ValueError(
                f"data.weights needs a number for each of the {len(self.train_files)} data.train_files; "
                f"got {len(self.weights)}"
            )
        if self.max_prompt_length < 1:
            raise ValueError(f"data.max_prompt_length must be positive; got {self.max_prompt_length}")
        if self.verifier_workers < 1 or self.verifier_timeout <= 0:
            raise ValueError("data.verifier_workers and data.verifier_timeout must be positive")


@dataclass(frozen=True, kw_only=True)
class SFTConfig:
    """Supervised warm-up of a built model: on solutions mixed with wrong ones, or on the worked solutions of files."""

    examples: int = 40000
    """Prompt and response pairs; of files, at most so many."""
    wrong_share: float = 0.25
    """Share of wrong responses among them, so that reinforcement learning starts from partial skill. Not of files."""
    steps: int = 900
    """Optimizer steps; 0 leaves a built model with the weights it was drawn with."""
    batch_size: int = 64
    """Pairs a step."""
    lr: float = 3e-3
    """Highest learning rate."""
    seed: int = 0
    """Seed of the weights, the pairs and their order."""


@dataclass(frozen=True, kw_only=True)
class RolloutConfig:
    """Sampling of responses, and the engine that does it."""

    name: str = "hf"
    """hf (the policy samples for itself) or vllm (an engine of its own, which is sent the weights)."""
    prompts: int = 32
    """Prompts a rollout step."""
    n: int = 8
    """Responses to each prompt: the group."""
    temperature: float = 1.0
    """Sampling temperature; the policy's log-probabilities and entropy are those at this temperature."""
    max_new_tokens: int = 24
    """Longest response, in tokens."""
    top_p: float = 1.0
    """Must stay 1: importance ratios are of whole distributions, not of truncated ones."""
    top_k: int = 0
    """Must stay 0 (all tokens), for the same reason."""
    max_num_seqs: int = 0
    """Sequences that are sampled together, by hf those of similar length. 0: all at once, or what vllm takes."""
    stop_token_ids: tuple[int, ...] = ()
    """Tokens that end a response besides the model's eos."""
    tensor_parallel_size: int = 1
    """vllm: GPUs that share an engine."""
    gpu_memory_utilization: float = 0.5
    """vllm: share of a GPU's memory that the engine may take."""
    kv_cache_gib: float = 1.0
    """vllm on a CPU: memory for keys and values, GiB."""
    max_model_len: int = 0
    """vllm: longest prompt and response together, in tokens; 0 takes the model's limit."""
    enable_prefix_caching: bool = True
    """vllm: prompts that begin alike are read once; forgotten when weights change."""
    filter_groups: bool = False
    """Dynamic sampling (DAPO): drop groups whose responses are all right or all wrong, and sample others instead."""
    max_gen_batches: int = 10
    """filter_groups: batches of `prompts` prompts that a rollout step may sample to fill itself."""
    old_logp: str = "trainer"
    """Whose log-probabilities importance ratios are taken from: trainer (computed again) or rollout (as sampled)."""
    lora_sync: str = "merged"
    """vllm, with model.lora_rank: sent are whole weights (merged) or the low-rank updates alone (adapter)."""
    timeout: float = 600.0
    """Seconds that an engine may take for an answer before it counts as hung."""

    def __post_init__(self) -> None:
        if self.name not in ROLLOUTS:
            raise ValueError(f"unknown rollout.name {self.name!r}; choose from {', '.join(ROLLOUTS)}")
        if self.top_p != 1 or self.top_k > 0:
            raise ValueError(
                "rollout.top_p must be 1 and rollout.top_k 0: samples of a truncated distribution have probability 0 "
                "elsewhere, and importance ratios to the whole one would be wrong"
            )
        if self.old_logp not in ("trainer", "rollout"):
            raise ValueError(f"rollout.old_logp must be trainer or rollout; got {self.old_logp!r}")
        if self.lora_sync not in ("merged", "adapter"):
            raise ValueError(f"rollout.lora_sync must be merged or adapter; got {self.lora_sync!r}")
        if self.max_num_seqs < 0:
            raise ValueError(f"rollout.max_num_seqs must not be negative; got {self.max_num_seqs}")
        if self.max_gen_batches < 1:
            raise ValueError(f"rollout.max_gen_batches must be positive; got {self.max_gen_batches}")
        if self.timeout <= 0:
            raise ValueError(f"rollout.timeout must be positive; got {self.timeout}")


@dataclass(frozen=True, kw_only=True)
class TopologyConfig:
    """Where learner and rollout engines live."""

    name: str = "local"
    """local (every rank samples for itself) or ray (learners and rollout engines are actors of a Ray cluster)."""
    placement: str = "colocated"
    """ray: colocated (rollout engines share the learners' GPUs) or disaggregated (they have GPUs of their own)."""
    rollout_engines: int = 1
    """ray: rollout engines, each with rollout.tensor_parallel_size GPUs."""
    staleness: int = 0
    """ray: rollout steps by which the weights that drew a response may be behind; 0 trains synchronously."""
    weight_sync: str = "object"
    """ray: new weights go through Ray's object store (object), or from GPU to GPU (nccl; vllm, disaggregated)."""
    address: str = ""
    """ray: cluster to join, such as auto; empty starts one on this machine, bound to loopback."""
    restarts: int = 0
    """ray: how often rollout engines that died, hang or gave what cannot be may be started anew in a run."""

    def __post_init__(self) -> None:
        if self.name not in TOPOLOGIES:
            raise ValueError(f"unknown topology.name {self.name!r}; choose from {', '.join(TOPOLOGIES)}")
        if self.placement not in ("colocated", "disaggregated"):
            raise ValueError(f"topology.placement must be colocated or disaggregated; got {self.placement!r}")
        if self.rollout_engines < 1 or self.staleness < 0 or self.restarts < 0:
            raise ValueError("topology.rollout_engines must be positive, staleness and restarts not negative")
        if self.weight_sync not in ("object", "nccl"):
            raise ValueError(f"topology.weight_sync must be object or nccl; got {self.weight_sync!r}")
        if self.weight_sync == "nccl" and (self.name, self.placement, self.restarts) != ("ray", "disaggregated", 0):
            raise ValueError(
                "topology.weight_sync nccl needs topology.name ray, placement disaggregated and restarts 0: it joins "
                "GPUs that differ, for good; use object"
            )
        if self.staleness and self.name == "local":
            raise ValueError("topology.staleness needs topology.name ray: a local rollout is never stale")


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """What is added to the verifier's verdict, 1 or 0; each term has a metric of its own."""

    overlong_filter: bool = False
    """Responses cut off at rollout.max_new_tokens are left out of the loss (DAPO)."""
    overlong_buffer: int = 0
    """Tokens before rollout.max_new_tokens over which a penalty grows (DAPO, eq. 13); 0 penalises no length."""
    overlong_penalty: float = 1.0
    """Penalty of a response that fills the buffer."""
    format: str = ""
    """Form that is rewarded: boxed (an answer in \\boxed{}) or tags (<think>…</think><answer>…</answer>)."""
    format_weight: float = 0.1
    """Reward of a response of that form."""
    length_weight: float = 0.0
    """Reward of brevity within a group, −1/2 to 1/2, at most 0 for wrong responses (Kimi k1.5, 2.3.3)."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"reward.format must be empty, {' or '.join(FORMATS[1:])}; got {self.format!r}")
        if self.overlong_buffer < 0 or self.overlong_penalty < 0:
            raise ValueError("reward.overlong_buffer and reward.overlong_penalty must not be negative")


@dataclass(frozen=True, kw_only=True)
class PrimeConfig:
    """The implicit reward model of the advantage `prime`."""

    lr: float = 1e-6
    """Its learning rate."""
    beta: float = 0.05
    """Scale of its rewards."""

    def __post_init__(self) -> None:
        if self.lr < 0 or self.beta <= 0:
            raise ValueError("prime.lr must not be negative, and prime.beta must be positive")


@dataclass(frozen=True, kw_only=True)
class OptimConfig:
    """AdamW, and how a rollout is cut into updates."""

    lr: float = 5e-4
    """Learning rate."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Decay rates of AdamW's moments."""
    weight_decay: float = 0.0
    """Decoupled weight decay."""
    warmup_steps: int = 0
    """Optimizer steps over which the learning rate rises linearly."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this norm; 0 leaves them as they are."""
    mini_batch_size: int = 16
    """Prompts an optimizer step."""
    ppo_epochs: int = 1
    """Passes over each rollout."""
    stats: str = "fresh"
    """What controllers see after the first update of a rollout: fresh (a forward pass more) or rollout (as sampled)."""
    micro_batch_tokens: int = 8192
    """Tokens, padding included, that go through the model at once. Changes speed and memory, never the update."""
    layout: str = "padded"
    """How sequences pass through the model: padded, packed (no padding) or shared (each prompt once for its group)."""

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise ValueError(f"optim.layout must be one of {', '.join(LAYOUTS)}; got {self.layout!r}")
        if self.stats not in ("fresh", "rollout"):
            raise ValueError(f"optim.stats must be fresh or rollout; got {self.stats!r}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"optim.betas must lie in [0, 1); got {self.betas}")


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """What takes the optimizer steps, and how the model is spread over processes."""

    name: str = "torch"
    """torch (one process) or deepspeed (any number of ranks, see nproc)."""
    zero_stage: int = 2
    """deepspeed: split over ranks nothing (0), optimizer states (1), gradients too (2), weights too (3)."""
    offload_optimizer: bool = False
    """deepspeed: keep optimizer states in CPU memory; needs zero_stage 1 or higher."""
    offload_param: bool = False
    """deepspeed: keep weights in CPU memory while they are not used; needs zero_stage 3."""
    bf16: bool = False
    """deepspeed: bf16 weights and activations, fp32 master weights; needs zero_stage 1 or higher."""
    gradient_checkpointing: bool = False
    """Keep each layer's input only and compute the rest again in the backward pass: a third more work."""
    deepspeed: dict[str, Any] = field(default_factory=dict)
    """In a --config file: keys of DeepSpeed's own configuration, laid over those made from the above."""

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise ValueError(f"unknown engine.name {self.name!r}; choose from {', '.join(ENGINES)}")
        if self.zero_stage not in range(4):
            raise ValueError(f"engine.zero_stage must be 0, 1, 2 or 3; got {self.zero_stage}")
        least = {"offload_optimizer": 1, "offload_param": 3, "bf16": 1}
        for key, stage in least.items():
            if getattr(self, key) and self.name == "torch":
                raise ValueError(f"engine.{key} needs engine.name deepspeed")
            if getattr(self, key) and self.zero_stage < stage:
                raise ValueError(f"engine.{key} needs engine.zero_stage {stage} or higher; got {self.zero_stage}")


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """Evaluation on held-out problems."""

    every: int = 10
    """Rollout steps between evaluations; 0 evaluates never."""
    k: int = 8
    """k of avg@k and pass@k."""
    samples: int = 8
    """Responses to each problem, at least k."""


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """Who sees the metrics besides the run log."""

    tensorboard: bool = True
    """Event files in <out>/tensorboard."""
    wandb: bool = False
    """Weights & Biases, which must be installed."""
    wandb_project: str = "llmtrain"
    """Project of Weights & Biases that the run belongs to."""


@dataclass(frozen=True, kw_only=True)
class ProfileConfig:
    """Traces of torch's profiler, in <out>/trace."""

    steps: tuple[int, ...] = ()
    """Rollout steps to trace, from 0."""

    def __post_init__(self) -> None:
        if any(step < 0 for step in self.steps):
            raise ValueError(f"profile.steps must not be negative; got {min(self.steps)}")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Train a policy by reinforcement learning with verifiable rewards, under an entropy controller."""

    out: str = "runs/train"
    """Folder of the run log and the checkpoints."""
    overwrite: bool = False
    """Replace a run that lies in `out`."""
    seed: int = 0
    """Seed of everything that is drawn during training."""
    steps: int = 160
    """Rollout steps."""
    save_every: int = 20
    """Rollout steps between checkpoints; the last two are kept, and one that restarted engines load."""
    controller: str = "grpo"
    """Entropy controllers by name, joined by +; `python -m entrostat list` shows them."""
    controller_preset: str = "paper"
    """paper (values as published) or released (as in the authors' code)."""
    controller_args: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters of the controllers; on the command line `--set kp=2 --set steer.lambda_min=0.7`."""
    target_entropy: float | None = None
    """Entropy to hold (nats), for controllers that have a target."""
    advantage: str = "grpo"
    """grpo, dr_grpo, rloo, reinforce_pp, opo, w_reinforce, psr, nsr or prime (a reward model learns along)."""
    device: str = "cpu"
    """Where the policy lives: cpu or cuda."""
    threads: int = 0
    """CPU threads of each process; 0 leaves torch's choice."""
    nproc: int = 1
    """Ranks to start, one a GPU: on this machine, or on the Ray cluster. Leave it at 1 under torchrun."""
    model: ModelConfig = ModelConfig()
    task: TaskConfig = TaskConfig()
    data: DataConfig = DataConfig()
    sft: SFTConfig = SFTConfig()
    rollout: RolloutConfig = RolloutConfig()
    reward: RewardConfig = RewardConfig()
    prime: PrimeConfig = PrimeConfig()
    optim: OptimConfig = OptimConfig()
    engine: EngineConfig = EngineConfig()
    topology: TopologyConfig = TopologyConfig()
    eval: EvalConfig = EvalConfig()
    log: LogConfig = LogConfig()
    profile: ProfileConfig = ProfileConfig()

    @property
    def adapter_rank(self) -> int:
        """Rank of the LoRA adapters that rollout engines are sent; 0: whole weights."""
        return self.model.lora_rank if self.rollout.lora_sync == "adapter" else 0

    @property
    def engine_gpus(self) -> int:
        """GPUs of rollout engines besides those of the ranks."""
        apart = self.topology.name == "ray" and self.topology.placement == "disaggregated"
        return self.topology.rollout_engines * self.rollout.tensor_parallel_size if apart else 0

    def __post_init__(self) -> None:
        for key in POSITIVE:
            if not attrgetter(key)(self) > 0:
                raise ValueError(f"{key} must be positive; got {attrgetter(key)(self)}")
        for key in NOT_NEGATIVE:
            if not attrgetter(key)(self) >= 0:
                raise ValueError(f"{key} must not be negative; got {attrgetter(key)(self)}")
        if self.model.path is None and self.model.hidden_size % (2 * self.model.num_heads):
            raise ValueError(
                f"model.num_heads {self.model.num_heads} must divide model.hidden_size {self.model.hidden_size} "
                "into heads of even width"
            )
        if self.rollout.n < 2:
            raise ValueError(f"rollout.n must be at least 2, or no advantage can be told; got {self.rollout.n}")
        if self.rollout.prompts % self.optim.mini_batch_size:
            raise ValueError(
                f"optim.mini_batch_size {self.optim.mini_batch_size} must divide rollout.prompts {self.rollout.prompts}"
            )
        if self.reward.overlong_buffer > self.rollout.max_new_tokens:
            raise ValueError("reward.overlong_buffer must not exceed rollout.max_new_tokens")
        if self.eval.samples < self.eval.k:
            raise ValueError(f"eval.samples {self.eval.samples} must not be below eval.k {self.eval.k}")
