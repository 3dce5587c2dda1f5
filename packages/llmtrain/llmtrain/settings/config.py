"""What a run is: frozen dataclasses, no torch. Read by the CLI as defaults < --preset < --config file < flags.

Keys keep the names people know from verl and TRL.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from entrostat.allowed import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Probability,
)
from entrostat.field_types import check_fields
from entrostat.schedules import check_target, plain, plain_target

from .sampling import Sampling

LearningRate = Annotated[float, "(0, 1]"]
"""Learning rate of AdamW, whose steps are about as long as this, in the units of the weights."""
Count = Annotated[int, "[1, 1000000]"]
"""Number of problems, prompts or pairs, or of steps."""
Seed = Annotated[int, "[0, 4294967295]"]
"""What all generators take, those of NumPy, torch and vLLM."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The policy."""

    ref_path: str | None = None
    """Folder of the reference policy of kl_ref. None: the model that the run starts from."""
    path: str | None = None
    """Folder of a causal language model (weights and tokenizer). None: build a small Qwen2 and warm it up, once."""
    trust_remote_code: bool = False
    """Run the Python code of a model folder that brings its own classes (auto_map); false refuses such a folder."""
    lora_rank: NonNegativeInt = 0
    """Rank of low-rank updates (LoRA) that are trained instead of the weights; 0 trains all weights."""
    lora_alpha: PositiveFloat = 32.0
    """Updates are multiplied by lora_alpha / lora_rank."""
    lora_target_modules: tuple[str, ...] = ()
    """Last parts of the names of the layers that get an update, such as q_proj; empty is all linear layers."""
    hidden_size: Annotated[int, "[1, 65536]"] = 128
    """Width of the built model."""
    num_layers: Annotated[int, "[1, 1024]"] = 4
    """Layers of the built model."""
    num_heads: Annotated[int, "[1, 65536]"] = 4
    """Attention heads of the built model."""
    intermediate_size: Annotated[int, "[1, 1048576]"] = 384
    """Width of the built model's MLP."""
    max_position_embeddings: Annotated[int, "[1, 16777216]"] = 256
    """Longest prompt and response together of the built model, in tokens."""
    vocab_size: Annotated[int, "[1, 1048576]"] = 1024
    """Tokens of a model built for questions from files: byte pairs, learnt from them. Countdown takes characters."""


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """A task whose problems are generated, unless data.train_files names files of questions."""

    name: str = "countdown"
    """countdown, countdown-wide, arithmetic, module:function of one's own, or files, which needs data.train_files."""
    train_problems: Count = 2048
    """Problems to train on, generated from `seed`."""
    test_problems: Annotated[int, "[0, 1000000]"] = 128
    """Held-out problems; none of them is among the training problems."""
    seed: Seed = 0
    """Seed of the problems."""


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Questions from files, and how they are put to the model."""

    train_files: tuple[str, ...] = ()
    """Questions to train on: parquet as verl writes it, jsonl, folders, or datasets of the HF hub. Empty: the task."""
    val_files: tuple[str, ...] = ()
    """Questions to evaluate on; their repeated rows count as one question."""
    weights: Annotated[tuple[float, ...], "[0, inf)"] = ()
    """Share of each train file in what is trained on; empty takes every question once an epoch."""
    prompt_key: str = ""
    """Column of the prompt, nested ones as a.b; empty finds prompt, question, problem or input."""
    answer_key: str = ""
    """Column of the ground truth; empty finds reward_model.ground_truth, ground_truth, answer and the like."""
    source_key: str = ""
    """Column of the source, by which results are told apart, such as level; empty takes data_source."""
    choice_seed: Seed = 0
    """Seed of the order of the options of multiple-choice questions (MMLU-Pro, GPQA)."""
    skip_bad: bool = False
    """Leave out rows that cannot be read, and count them; without it the first one ends the run."""
    max_prompt_length: PositiveInt = 1024
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
    """Who judges: math, exact, regex, countdown, python, ifeval, or a function as module:function."""
    verifier_workers: Annotated[int, "[1, 4096]"] = 2
    """Checks at a time, of each rank."""
    verifier_timeout: PositiveFloat = 5.0
    """Seconds for one check; a response whose check takes longer counts as wrong."""

    def __post_init__(self) -> None:
        if self.weights and len(self.weights) != len(self.train_files):
            raise ValueError(
                f"data.weights needs a number for each of the {len(self.train_files)} data.train_files; "
                f"got {len(self.weights)}"
            )


@dataclass(frozen=True, kw_only=True)
class SFTConfig:
    """Supervised warm-up of a built model: on solutions mixed with wrong ones, or on the worked solutions of files."""

    examples: Annotated[int, "[1, 100000000]"] = 40000
    """Prompt and response pairs; of files, at most so many."""
    wrong_share: Probability = 0.25
    """Share of wrong responses among them, so that reinforcement learning starts from partial skill. Not of files."""
    steps: NonNegativeInt = 900
    """Optimizer steps; 0 leaves a built model with the weights it was drawn with."""
    batch_size: PositiveInt = 64
    """Pairs a step."""
    lr: Annotated[float, "[0, 1]"] = 3e-3
    """Highest learning rate."""
    seed: Seed = 0
    """Seed of the weights, the pairs and their order."""


@dataclass(frozen=True, kw_only=True)
class RolloutConfig:
    """Sampling of responses, and the engine that does it."""

    name: str = "hf"
    """hf (the policy samples for itself), vllm (an engine of its own, which is sent the weights), or module:Class."""
    prompts: Count = 32
    """Prompts a rollout step."""
    n: Annotated[int, "[2, 65536]"] = 8
    """Responses to each prompt: the group."""
    temperature: PositiveFloat = 1.0
    """Sampling temperature; the policy's log-probabilities and entropy are those at this temperature."""
    max_new_tokens: Annotated[int, "[1, 16777216]"] = 24
    """Longest response, in tokens."""
    top_p: float = 1.0
    """Must stay 1: importance ratios are of whole distributions, not of truncated ones."""
    top_k: int = 0
    """Must stay 0 (all tokens), for the same reason."""
    max_num_seqs: NonNegativeInt = 0
    """Sequences that are sampled together, by hf those of similar length. 0: all at once, or what vllm takes."""
    stop_token_ids: tuple[int, ...] = ()
    """Tokens that end a response besides the model's eos."""
    tensor_parallel_size: PositiveInt = 1
    """vllm: GPUs that share an engine."""
    gpu_memory_utilization: Annotated[float, "(0, 1]"] = 0.5
    """vllm: share of a GPU's memory that the engine may take."""
    kv_cache_gib: PositiveFloat = 1.0
    """vllm on a CPU: memory for keys and values, GiB."""
    max_model_len: NonNegativeInt = 0
    """vllm: longest prompt and response together, in tokens; 0 takes the model's limit."""
    enable_prefix_caching: bool = True
    """vllm: prompts that begin alike are read once; forgotten when weights change."""
    filter_groups: bool = False
    """Dynamic sampling (DAPO): drop groups whose responses are all right or all wrong, and sample others instead."""
    gen_batch_size: NonNegativeInt = 0
    """filter_groups: prompts of a batch, 0 for `prompts`; more fill a step sooner, as a batch waits for its longest."""
    max_gen_batches: PositiveInt = 10
    """filter_groups: batches that a rollout step may sample to fill itself."""
    old_logp: Literal["trainer", "rollout"] = "trainer"
    """Whose log-probabilities importance ratios are taken from: trainer (computed again) or rollout (as sampled)."""
    lora_sync: Literal["merged", "adapter"] = "merged"
    """vllm, with model.lora_rank: sent are whole weights (merged) or the low-rank updates alone (adapter)."""
    timeout: PositiveFloat = 600.0
    """Seconds that an engine may take for an answer before it counts as hung."""

    @property
    def sampling(self) -> Sampling:
        """How the responses that are trained on are drawn."""
        return Sampling(temperature=self.temperature, samples=self.n, max_new_tokens=self.max_new_tokens)

    def __post_init__(self) -> None:
        if self.top_p != 1 or self.top_k > 0:
            raise ValueError(
                "rollout.top_p must be 1 and rollout.top_k 0: samples of a truncated distribution have probability 0 "
                "elsewhere, and importance ratios to the whole one would be wrong"
            )
        if self.gen_batch_size and not self.filter_groups:
            raise ValueError("rollout.gen_batch_size needs rollout.filter_groups: without it a batch is `prompts`")


@dataclass(frozen=True, kw_only=True)
class TopologyConfig:
    """Where learner and rollout engines live."""

    name: Literal["local", "ray"] = "local"
    """local (every rank samples for itself) or ray (learners and rollout engines are actors of a Ray cluster)."""
    placement: Literal["colocated", "disaggregated"] = "colocated"
    """ray: colocated (rollout engines share the learners' GPUs) or disaggregated (they have GPUs of their own)."""
    rollout_engines: PositiveInt = 1
    """ray: rollout engines, each with rollout.tensor_parallel_size GPUs."""
    staleness: NonNegativeInt = 0
    """ray: rollout steps by which the weights that drew a response may be behind; 0 trains synchronously."""
    weight_sync: Literal["object", "nccl"] = "object"
    """ray: new weights go through Ray's object store (object), or from GPU to GPU (nccl; vllm, disaggregated)."""
    address: str = ""
    """ray: cluster to join, such as auto; empty starts one on this machine, bound to loopback."""
    restarts: NonNegativeInt = 0
    """ray: how often rollout engines that died, hang or gave what cannot be may be started anew in a run."""

    def __post_init__(self) -> None:
        if self.weight_sync == "nccl" and (self.name, self.placement, self.restarts) != ("ray", "disaggregated", 0):
            raise ValueError(
                "topology.weight_sync nccl needs topology.name ray, placement disaggregated and restarts 0: it joins "
                "GPUs that differ, for good; use object"
            )
        if self.staleness and self.name == "local":
            raise ValueError("topology.staleness needs topology.name ray: a local rollout is never stale")
        asked = {"rollout_engines": self.rollout_engines > 1, "placement": self.placement == "disaggregated"}
        for key, others in asked.items():
            if others and self.name == "local":
                raise ValueError(f"topology.{key} needs topology.name ray: locally every rank samples for itself")


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """What is added to the verifier's verdict, 1 or 0; each term has a metric of its own."""

    function: str = ""
    """Reward function of one's own, module:function, whose numbers are added (reward/function); see docs/data.md."""
    function_weight: float = 1.0
    """Factor of its numbers."""
    verdict_weight: float = 1.0
    """Factor of the verdict in the reward; 0 trains on the other terms alone. The metric `reward` stays the verdict."""
    overlong_filter: bool = False
    """Responses cut off at rollout.max_new_tokens are left out of the loss (DAPO)."""
    overlong_buffer: NonNegativeInt = 0
    """Tokens before rollout.max_new_tokens over which a penalty grows (DAPO, eq. 13); 0 penalises no length."""
    overlong_penalty: NonNegativeFloat = 1.0
    """Penalty of a response that fills the buffer."""
    format: Literal["", "boxed", "tags"] = ""
    """Form that is rewarded: boxed (an answer in \\boxed{}), tags (<think>…</think><answer>…</answer>) or '' (none)."""
    format_weight: float = 0.1
    """Reward of a response of that form."""
    length_weight: float = 0.0
    """Reward of brevity within a group, −1/2 to 1/2, at most 0 for wrong responses (Kimi k1.5, 2.3.3)."""


@dataclass(frozen=True, kw_only=True)
class PrimeConfig:
    """The implicit reward model of the advantage `prime`."""

    lr: LearningRate = 1e-6
    """Its learning rate."""
    beta: PositiveFloat = 0.05
    """Scale of its rewards."""


@dataclass(frozen=True, kw_only=True)
class OptimConfig:
    """AdamW, and how a rollout is cut into updates."""

    lr: LearningRate = 5e-4
    """Learning rate."""
    betas: Annotated[tuple[float, float], "[0, 1)"] = (0.9, 0.95)
    """Decay rates of AdamW's moments."""
    weight_decay: NonNegativeFloat = 0.0
    """Decoupled weight decay."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning rate after the warm-up: constant, or falling until the last step of the run, linearly or as a cosine."""
    warmup_steps: NonNegativeInt = 0
    """Optimizer steps over which the learning rate rises linearly."""
    min_lr_ratio: Annotated[float, "[0, 1]"] = 0.0
    """linear, cosine: learning rate at the end of the run, as a share of `lr`."""
    max_grad_norm: NonNegativeFloat = 1.0
    """Gradients are scaled down to this norm; 0 leaves them as they are."""
    mini_batch_size: PositiveInt = 16
    """Prompts an optimizer step."""
    ppo_epochs: PositiveInt = 1
    """Passes over each rollout, with the same mini-batches."""
    stats: Literal["fresh", "rollout"] = "fresh"
    """What controllers see after the first update of a rollout: fresh (a forward pass more) or rollout (as sampled)."""
    micro_batch_tokens: PositiveInt = 8192
    """Tokens, padding included, that go through the model at once. Changes speed and memory, never the update."""
    layout: Literal["padded", "packed", "shared"] = "padded"
    """How sequences pass through the model: padded, packed (no padding) or shared (each prompt once for its group)."""

    def __post_init__(self) -> None:
        if self.min_lr_ratio and self.lr_schedule == "constant":
            raise ValueError("optim.min_lr_ratio needs optim.lr_schedule linear or cosine: a constant rate has no end")


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """What takes the optimizer steps, and how the model is spread over processes."""

    name: Literal["torch", "deepspeed"] = "torch"
    """torch (one process) or deepspeed (any number of ranks, see nproc)."""
    zero_stage: Annotated[int, "[0, 3]"] = 2
    """deepspeed: split over ranks nothing (0), optimizer states (1), gradients too (2), weights too (3)."""
    offload_optimizer: bool = False
    """deepspeed: keep optimizer states in CPU memory; needs zero_stage 1 or higher."""
    offload_param: bool = False
    """deepspeed: keep weights in CPU memory while they are not used; needs zero_stage 3."""
    bf16: bool = False
    """deepspeed: bf16 weights and activations, fp32 master weights; needs zero_stage 1 or higher. torch: fp32 weights,
    bf16 products (autocast) everywhere but in the output layer."""
    ddp_timeout: PositiveFloat = 1800.0
    """deepspeed: seconds that a rank waits for the others in a collective; more than rollout.timeout."""
    gradient_checkpointing: bool = False
    """Keep each layer's input only and compute the rest again in the backward pass: a third more work."""
    deepspeed: dict[str, Any] = field(default_factory=dict)
    """In a --config file: keys of DeepSpeed's own configuration, laid over those made from the above."""

    def __post_init__(self) -> None:
        least = {"offload_optimizer": 1, "offload_param": 3, "bf16": 1, "deepspeed": 0}
        for key, stage in least.items():
            if getattr(self, key) and self.name == "torch" and key != "bf16":
                raise ValueError(f"engine.{key} needs engine.name deepspeed")
            if getattr(self, key) and self.name == "deepspeed" and self.zero_stage < stage:
                raise ValueError(f"engine.{key} needs engine.zero_stage {stage} or higher; got {self.zero_stage}")


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """Evaluation on held-out problems."""

    every: NonNegativeInt = 10
    """Rollout steps between evaluations; 0 evaluates never."""
    k: PositiveInt = 8
    """k of avg@k and pass@k."""
    samples: Annotated[int, "[1, 65536]"] = 8
    """Responses to each problem, at least k."""
    settings: str = ""
    """Sample each benchmark as this paper does, see `llmtrain eval --help`; then k and samples are those of the paper.
    '' samples as in rollouts."""
    max_samples: NonNegativeInt = 0
    """settings: upper limit for the responses to each problem, and for k; 0 for none."""
    temperature: NonNegativeFloat | None = None
    """Sampling temperature instead of that of `settings` or of rollouts; 0 takes the most likely token."""
    top_p: Annotated[float | None, "(0, 1]"] = None
    """Nucleus sampling below 1, instead of that of `settings`."""
    max_new_tokens: PositiveInt | None = None
    """Longest response, in tokens, instead of that of `settings` or of rollouts."""

    def __post_init__(self) -> None:
        if self.max_samples and not self.settings:
            raise ValueError("eval.max_samples limits the samples of eval.settings: without it set eval.samples")


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """Checkpoints that a run keeps, of those written at every `save_every` steps; the others are removed."""

    keep_last: PositiveInt = 2
    """Number of newest checkpoints."""
    keep_every: NonNegativeInt = 0
    """Also those at every multiple of this number of rollout steps; 0 for none."""
    keep_best: str = ""
    """Also the one with the highest value of this metric, such as eval/avg@8 or eval/aime24/avg@8; '' for none."""


Policy = Literal["warn", "skip", "stop", "roll_back"]
"""What is done at a limit: see training/guard.py."""


@dataclass(frozen=True, kw_only=True)
class GuardConfig:
    """Limits of an update, and what is done beyond them: warn, skip the update, stop with a checkpoint, or roll back to
    the last checkpoint and lower the learning rate. A limit of 0 is none."""

    non_finite: Literal["skip", "stop", "roll_back"] = "stop"
    """If loss or gradient is NaN or infinite; entropy and mismatch then stop or roll back. No such update is taken."""
    loss: Policy = "warn"
    """If the absolute loss of an update is above loss_above."""
    loss_above: NonNegativeFloat = 0.0
    """Largest absolute loss of an update."""
    grad_norm: Policy = "warn"
    """If the norm of a gradient, before it is scaled down, is above grad_norm_above."""
    grad_norm_above: NonNegativeFloat = 0.0
    """Largest norm of a gradient."""
    entropy: Policy = "warn"
    """If the mean entropy of a rollout is below entropy_below or above entropy_above; skip leaves out its updates."""
    entropy_below: NonNegativeFloat = 0.0
    """Least mean entropy, in nats."""
    entropy_above: NonNegativeFloat = 0.0
    """Largest mean entropy, in nats."""
    mismatch: Policy = "warn"
    """If mismatch/kl between sampler and trainer is above mismatch_above; skip leaves out the rollout's updates."""
    mismatch_above: NonNegativeFloat = 0.0
    """Largest mismatch/kl, in nats."""
    lr_factor: Annotated[float, "(0, 1]"] = 0.5
    """roll_back: factor of the learning rate, once more at each roll-back."""
    roll_backs: PositiveInt = 3
    """roll_back: how often; then the run stops."""

    def limits(self, name: str) -> bool:
        """Return True if the quantity of this name has a limit."""
        return any(getattr(self, f"{name}_{end}", 0.0) for end in ("above", "below"))

    def does(self, policy: str) -> list[str]:
        """Return the names of the settings that have this policy."""
        names = ("non_finite", *(name for name in ("loss", "grad_norm", "entropy", "mismatch") if self.limits(name)))
        return [f"guard.{name}" for name in names if getattr(self, name) == policy]


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

    steps: Annotated[tuple[int, ...], "[0, inf)"] = ()
    """Rollout steps to trace, from 0."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Train a policy by reinforcement learning with verifiable rewards, under an entropy controller."""

    out: str = "runs/train"
    """Folder of the run log and the checkpoints."""
    overwrite: bool = False
    """Replace a run that lies in `out`."""
    seed: Seed = 0
    """Seed of everything that is drawn during training."""
    steps: Annotated[int, "[1, 100000000]"] = 160
    """Rollout steps."""
    save_every: PositiveInt = 20
    """Rollout steps between checkpoints; see `checkpoint` for those that are kept."""
    controller: str = "grpo"
    """Entropy controllers by name, joined by +; `python -m entrostat list` shows them."""
    controller_preset: Literal["paper", "released"] = "paper"
    """paper (values as published) or released (as in the authors' code)."""
    controller_args: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters of the controllers; on the command line `--set kp=2 --set steer.lambda_min=0.7`."""
    target: float | None | str = None  # noqa: RUF036 (on command lines None is read before text)
    """Entropy to hold (nats), for controllers that have a target, or a schedule of it, such as
    `linear(0.65, 0.15, 400)` and `0.4x`, which is 0.4 times the entropy of the first rollout."""
    advantage: str = "grpo"
    """grpo, dr_grpo, rloo, reinforce_pp, opo, qae, w_reinforce, psr, nsr or prime (a reward model learns along).
    Hyperparameters follow the name: `qae k=0.6`."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the policy lives: cpu or cuda."""
    threads: Annotated[int, "[0, 4096]"] = 0
    """CPU threads of each process; 0 leaves torch's choice."""
    nproc: Annotated[int, "[1, 65536]"] = 1
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
    checkpoint: CheckpointConfig = CheckpointConfig()
    guard: GuardConfig = GuardConfig()
    log: LogConfig = LogConfig()
    profile: ProfileConfig = ProfileConfig()

    @property
    def updates(self) -> int:
        """Optimizer steps of a rollout step; fewer where dynamic sampling has not found all groups."""
        return self.optim.ppo_epochs * self.rollout.prompts // self.optim.mini_batch_size

    @property
    def total_updates(self) -> int:
        """Optimizer steps of the whole run, over which a learning-rate schedule extends."""
        return self.steps * self.updates

    @property
    def adapter_rank(self) -> int:
        """Rank of the LoRA adapters that rollout engines are sent; 0: whole weights."""
        return self.model.lora_rank if self.rollout.lora_sync == "adapter" else 0

    @property
    def sleep_level(self) -> int:
        """vLLM's sleep level while the learners train on its GPU: 2 drops the weights, which are sent before they are
        needed again; 1 keeps those that adapters are added to, in host memory; 0 for engines that never sleep."""
        apart = self.topology.placement == "disaggregated" or self.topology.staleness > 0
        if self.topology.name == "ray" and apart:
            return 0
        return 1 if self.adapter_rank else 2

    @property
    def engine_gpus(self) -> int:
        """GPUs of rollout engines besides those of the ranks."""
        apart = self.topology.name == "ray" and self.topology.placement == "disaggregated"
        return self.topology.rollout_engines * self.rollout.tensor_parallel_size if apart else 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", plain_target(self.target))
        object.__setattr__(self, "controller_args", plain(self.controller_args))
        check_fields(self)
        check_target(self.target)
        if not self.out:
            raise ValueError("out is empty: name the folder of the run")
        if self.model.path is None and self.model.hidden_size % (2 * self.model.num_heads):
            raise ValueError(
                f"model.num_heads {self.model.num_heads} must divide model.hidden_size {self.model.hidden_size} "
                "into heads of even width"
            )
        if self.rollout.prompts % self.optim.mini_batch_size:
            raise ValueError(
                f"optim.mini_batch_size {self.optim.mini_batch_size} must divide rollout.prompts {self.rollout.prompts}"
            )
        if self.reward.overlong_buffer > self.rollout.max_new_tokens:
            raise ValueError("reward.overlong_buffer must not exceed rollout.max_new_tokens")
        if self.eval.samples < self.eval.k:
            raise ValueError(f"eval.samples {self.eval.samples} must not be below eval.k {self.eval.k}")
