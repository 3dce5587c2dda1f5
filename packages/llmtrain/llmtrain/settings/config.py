"""Configuration of a run: frozen dataclasses, no torch. Layers: defaults < --preset < --config file < flags.

Keys are named as in verl and TRL.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from entrostat.settings.allowed import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Probability
from entrostat.settings.field_types import check_fields
from entrostat.settings.schedules import check_target, check_temperature, plain, plain_target, schedule

from .complaints import raise_all
from .sampling import Sampling

LearningRate = Annotated[float, "(0, 1]"]
"""Learning rate of AdamW, whose steps are about as long as this, in the units of the weights."""
Count = Annotated[int, "[1, 1000000]"]
"""Number of problems, prompts or pairs, or of steps."""
Seed = Annotated[int, "[0, 4294967295]"]
"""Seed that all generators accept: those of NumPy, torch and vLLM."""


class Section:
    """Settings that may contradict each other."""

    def __post_init__(self) -> None:
        raise_all(self._contradictions())

    def _contradictions(self) -> Iterator[str]:
        """Yield what in these settings cannot work together."""
        yield from ()


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The policy."""

    ref_path: str | None = None
    """Folder of the reference policy for kl_ref. None: the initial model of the run."""
    path: str | None = None
    """Folder of a causal language model (weights and tokenizer). None: build a small Qwen2 and warm it up once."""
    trust_remote_code: bool = False
    """Run the Python code of a model folder that brings its own classes (auto_map); false refuses such a folder."""
    lora_rank: NonNegativeInt = 0
    """Rank of low-rank updates (LoRA) that are trained instead of the weights; 0 trains all weights."""
    lora_alpha: PositiveFloat = 32.0
    """Scale of LoRA updates: they are multiplied by lora_alpha / lora_rank."""
    lora_target_modules: tuple[str, ...] = ()
    """Layer-name suffixes of the layers that get LoRA updates, such as q_proj; empty: all linear layers."""
    hidden_size: Annotated[int, "[1, 65536]"] = 128
    """Width of the built model."""
    num_layers: Annotated[int, "[1, 1024]"] = 4
    """Layers of the built model."""
    num_heads: Annotated[int, "[1, 65536]"] = 4
    """Attention heads of the built model."""
    intermediate_size: Annotated[int, "[1, 1048576]"] = 384
    """Width of the built model's MLP."""
    max_position_embeddings: Annotated[int, "[1, 16777216]"] = 256
    """Maximum length of prompt plus response for the built model, in tokens."""
    vocab_size: Annotated[int, "[1, 1048576]"] = 1024
    """Vocabulary size of a model built for questions from files, with byte pairs learned from them. Countdown uses
    characters."""


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """Task with generated problems, used unless data.train_files names question files."""

    name: str = "countdown"
    """countdown, countdown-wide, arithmetic, arithmetic-easy, constraints, a task of a plug-in, module:function, or
    files, which needs data.train_files."""
    train_problems: Count = 2048
    """Problems to train on, generated from `seed`."""
    test_problems: Annotated[int, "[0, 1000000]"] = 128
    """Held-out problems, disjoint from the training problems."""
    seed: Seed = 0
    """Seed of the problems."""


@dataclass(frozen=True, kw_only=True)
class DataConfig(Section):
    """Questions from files, and the prompts made from them."""

    train_files: tuple[str, ...] = ()
    """Training questions: parquet in verl's format, jsonl, folders, or datasets on the HF hub. Empty: use the task."""
    val_files: tuple[str, ...] = ()
    """Evaluation questions; repeated rows count as one question."""
    weights: Annotated[tuple[float, ...], "[0, inf)"] = ()
    """Sampling weight of each train file; empty: every question once per epoch."""
    curriculum: bool = False
    """Draw questions by their pass rate p so far, with weight 4p(1 − p) + curriculum_floor, instead of all once per
    epoch: the more often, the farther their groups are from all right and all wrong."""
    curriculum_rate: Annotated[float, "(0, 1]"] = 0.5
    """curriculum: share of a new group in the moving average of its question's pass rate."""
    curriculum_floor: Annotated[float, "(0, 1]"] = 0.1
    """curriculum: weight of a question that is always or never answered right; the greatest weight is 1 more."""
    prompt_key: str = ""
    """Prompt column, dotted if nested (a.b); empty: the first of prompt, question, problem and input."""
    answer_key: str = ""
    """Ground-truth column; empty: reward_model.ground_truth, ground_truth, answer or a similar name."""
    source_key: str = ""
    """Column that groups results, such as level; empty: data_source."""
    keep: tuple[str, ...] = ()
    """Training rows to keep, as COLUMN=VALUE, such as ability=math; several values of a column: any of them. A file
    without the column is kept whole. Empty: all rows."""
    choice_seed: Seed = 0
    """Seed for shuffling the options of multiple-choice questions (MMLU-Pro, GPQA)."""
    skip_bad: bool = False
    """Skip and count unreadable rows; otherwise the first one ends the run."""
    max_prompt_length: PositiveInt = 1024
    """Maximum prompt length in tokens, chat template included; longer prompts are skipped and counted. Unless set, no
    more than the model can hold beside a response."""
    as_chat: bool = True
    """Wrap plain-text prompts as user messages; false: pass them to the model unchanged."""
    chat_template: str = ""
    """File with a Jinja chat template, used instead of the tokenizer's own."""
    system_prompt: str = ""
    """System message for prompts without one."""
    instruction: str = ""
    """Text appended to each question, such as "Put your final answer within \\boxed{}."."""
    verifier: str = "math"
    """Verifier: math, exact, regex, countdown, python, ifeval, that of a plug-in, or a function as module:function;
    others for single sources follow it, as in "math livecodebench=python ifeval=ifeval"."""
    answer_after: str = ""
    """Mark before the answer, such as "</think>": only what follows the last one is judged; a response without it is
    wrong. Empty: an answer follows the thinking, if <think> or a similar mark begins one."""
    verifier_workers: Annotated[int, "[1, 4096]"] = 2
    """Concurrent checks per rank."""
    verifier_timeout: PositiveFloat = 5.0
    """Time limit for one check, in seconds; a response that exceeds it counts as wrong."""

    def _contradictions(self) -> Iterator[str]:
        if self.weights and self.curriculum:
            yield "data.curriculum decides how often a question is drawn: leave out data.weights"
        if self.weights and len(self.weights) != len(self.train_files):
            yield (
                f"data.weights needs a number for each of the {len(self.train_files)} data.train_files; "
                f"got {len(self.weights)}"
            )


@dataclass(frozen=True, kw_only=True)
class SFTConfig:
    """Supervised warm-up of a built model, on generated solutions mixed with wrong ones or on worked solutions from
    files."""

    examples: Annotated[int, "[1, 100000000]"] = 40000
    """Prompt and response pairs; for file data, an upper limit."""
    wrong_share: Probability = 0.25
    """Share of wrong responses, so that RL starts from partial skill; not used for file data."""
    steps: NonNegativeInt = 900
    """Optimizer steps; 0 leaves a built model with its random weights."""
    batch_size: PositiveInt = 64
    """Pairs per optimizer step."""
    lr: Annotated[float, "[0, 1]"] = 3e-3
    """Peak learning rate."""
    loss: Literal["cross_entropy", "gem"] = "cross_entropy"
    """cross_entropy, or gem, which leaves the policy more entropy for RL: cross-entropy of the policy at temperature
    gem_beta."""
    gem_beta: Annotated[float, "(0, 1]"] = 0.7
    """gem: β, the temperature at which the policy learns the data; 1 is cross-entropy."""
    seed: Seed = 0
    """Seed of the weights, the pairs and their order."""


@dataclass(frozen=True, kw_only=True)
class RolloutConfig(Section):
    """Sampling of responses, and the engine that does it."""

    name: str = "hf"
    """Rollout engine: hf (the policy itself generates), vllm (a separate engine that receives the weights), that of
    a plug-in, or module:Class."""
    prompts: Count = 32
    """Prompts per rollout step."""
    n: Annotated[int | str, "[1, 65536]"] = 8
    """Responses per prompt (group size), or a schedule of it, such as "piecewise(0: 8, 200: 16)"; values between whole
    numbers are rounded. At least 2, unless the advantage compares with something other than the group."""
    temperature: float | str = 1.0
    """Sampling temperature, or a schedule of it, such as "linear(1.2, 1, 400)"; log-probabilities and entropy of the
    policy are computed at it too. Evaluations of a run whose temperature moves sample at 1."""
    train_at_one: bool = False
    """Train the policy at temperature 1 whatever it is sampled at, with importance ratios to the samples' policy."""
    max_new_tokens: Annotated[int, "[1, 16777216]"] = 24
    """Maximum response length in tokens."""
    partial_tokens: NonNegativeInt = 0
    """Partial rollouts: a response gets at most so many tokens before the weights change, and goes on under the new
    ones; a step trains on the groups that have ended. 0: every response is finished in the step that began it."""
    top_p: float = 1.0
    """Must be 1: importance ratios need the full distribution, not a truncated one."""
    top_k: int = 0
    """Must be 0 (all tokens), for the same reason."""
    max_num_seqs: NonNegativeInt = 0
    """Sequences generated at once (hf groups similar lengths). 0: all with hf, vLLM's default with vllm."""
    stop_token_ids: tuple[int, ...] = ()
    """Tokens that end a response, in addition to the model's eos."""
    tensor_parallel_size: PositiveInt = 1
    """vllm: GPUs per engine."""
    gpu_memory_utilization: Annotated[float, "(0, 1]"] = 0.5
    """vllm: share of GPU memory for the engine."""
    kv_cache_gib: PositiveFloat = 1.0
    """vllm on a CPU: KV-cache memory in GiB."""
    max_model_len: NonNegativeInt = 0
    """vllm: maximum length of prompt plus response in tokens; 0: the model's limit."""
    enable_prefix_caching: bool = True
    """vllm: compute shared prompt prefixes once; the cache is cleared when weights change."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """vllm: precision of its weights and activations; auto: bfloat16 on CUDA, float32 on a CPU."""
    filter_groups: bool = False
    """Dynamic sampling (DAPO): replace groups whose responses are all right or all wrong."""
    gen_batch_size: NonNegativeInt = 0
    """filter_groups: prompts per generation batch; 0: `prompts`. More fill a step sooner, since a batch waits for its
    longest response."""
    max_gen_batches: PositiveInt = 10
    """filter_groups: maximum number of generation batches per rollout step."""
    old_logp: Literal["auto", "trainer", "rollout"] = "auto"
    """Source of the old log-probabilities in importance ratios: trainer (recomputed), rollout (as sampled), or auto:
    rollout with hf in one process where it proves exact in fp32, within 1e-5 nats a token; saves a forward pass."""
    lora_sync: Literal["merged", "adapter"] = "merged"
    """vllm, with model.lora_rank: send whole weights (merged) or only the LoRA updates (adapter)."""
    timeout: PositiveFloat = 600.0
    """Seconds without an answer after which an engine counts as hung."""

    @property
    def sampling(self) -> Sampling:
        """Sampling settings of training responses; at temperature 1 while it moves, see `temperature_at`."""
        held = 1.0 if isinstance(self.temperature, str) else self.temperature
        return Sampling(temperature=held, samples=max(self.group_sizes), max_new_tokens=self.max_new_tokens)

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Group sizes that rollout steps may have, ascending."""
        if not isinstance(self.n, str):
            return (self.n,)
        (moving,) = schedule(self.n).single
        knots = [round(knot.number) for knot in moving.knots]
        return tuple(sorted(set(knots)) if moving.shape == "piecewise" else range(min(knots), max(knots) + 1))

    def n_at(self, step: int, steps: int) -> int:
        """Return the group size at a rollout step of a run of so many steps."""
        return round(schedule(self.n).at(step, steps)[0])

    def temperature_at(self, step: int, steps: int) -> float:
        """Return the sampling temperature at a rollout step of a run of so many steps."""
        return float(schedule(self.temperature).at(step, steps)[0])

    def __post_init__(self) -> None:
        object.__setattr__(self, "temperature", plain_target(self.temperature))
        super().__post_init__()

    def _contradictions(self) -> Iterator[str]:
        try:
            check_temperature(self.temperature)
        except ValueError as error:
            yield f"rollout.{error}"
        if isinstance(self.n, str):
            yield from _wrong_sizes(self.n)
        if self.top_p != 1 or self.top_k > 0:
            yield (
                "rollout.top_p must be 1 and rollout.top_k 0: samples of a truncated distribution have probability 0 "
                "elsewhere, and importance ratios to the whole one would be wrong"
            )
        if self.gen_batch_size and not self.filter_groups:
            yield "rollout.gen_batch_size needs rollout.filter_groups: without it a batch is `prompts`"


def _wrong_sizes(n: str) -> Iterator[str]:
    """Yield what is wrong with a schedule of the group size."""
    try:
        knots = [knot for one in schedule(n).single for knot in one.knots]
    except ValueError as error:
        yield f"rollout.n {error}"
        return
    for knot in knots:
        if knot.share or knot.number != int(knot.number) or not 1 <= knot.number <= 65536:
            said = f"{knot.share:g}x" if knot.share else f"{knot.number:g}"
            yield f"rollout.n {n} must lead through whole numbers in [1, 65536], not {said}"
            return


@dataclass(frozen=True, kw_only=True)
class TopologyConfig(Section):
    """Placement of learners and rollout engines."""

    name: Literal["local", "ray"] = "local"
    """local (each rank generates its own responses) or ray (learners and rollout engines are Ray actors)."""
    placement: Literal["colocated", "disaggregated"] = "colocated"
    """ray: colocated (rollout engines share the learners' GPUs) or disaggregated (they have their own GPUs)."""
    rollout_engines: NonNegativeInt = 0
    """ray: number of rollout engines, each with rollout.tensor_parallel_size GPUs. 0: as many as fit on the learners'
    GPUs, if they share them, or else 1."""
    staleness: NonNegativeInt = 0
    """ray: maximum age of the weights that generate a response, in rollout steps; 0: synchronous training."""
    weight_sync: Literal["object", "ipc", "nccl"] = "object"
    """ray: send weights through Ray's object store (object), within each GPU (ipc; vllm, colocated) or from GPU to GPU
    (nccl; vllm, disaggregated)."""
    address: str = ""
    """ray: address of the cluster to join, such as auto; empty: start one on this machine, bound to loopback."""
    restarts: NonNegativeInt = 0
    """ray: maximum number of restarts of rollout engines that crashed, hung or returned invalid output."""
    elastic_engines: Annotated[int, "[0, 4096]"] = 0
    """ray: upper limit for more rollout engines, which join when the cluster has room and may be lost at any time."""

    def _contradictions(self) -> Iterator[str]:
        changes = self.restarts + self.elastic_engines
        needs = {"nccl": ("disaggregated", "GPUs that differ"), "ipc": ("colocated", "processes on the same GPUs")}
        placement, joined = needs.get(self.weight_sync, (self.placement, ""))
        if joined and (self.name, self.placement, changes) != ("ray", placement, 0):
            yield (
                f"topology.weight_sync {self.weight_sync} needs topology.name ray, placement {placement}, restarts 0 "
                f"and elastic_engines 0: it joins {joined}, for good; use object"
            )
        if self.staleness and self.name == "local":
            yield "topology.staleness needs topology.name ray: a local rollout is never stale"
        asked = {"rollout_engines": self.rollout_engines > 1, "placement": self.placement == "disaggregated"}
        asked |= {"elastic_engines": self.elastic_engines > 0}
        for key, others in asked.items():
            if others and self.name == "local":
                yield f"topology.{key} needs topology.name ray: locally every rank samples for itself"


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """Reward terms added to the verifier's verdict (1 or 0), each logged as its own metric."""

    function: str = ""
    """Custom reward function, module:function, whose values are added (reward/function); see docs/data.md."""
    function_weight: float = 1.0
    """Weight of the custom reward."""
    verdict_weight: float = 1.0
    """Weight of the verdict; 0 trains on the other terms only. The metric `reward` remains the verdict."""
    overlong_filter: bool = False
    """Exclude responses truncated at rollout.max_new_tokens from the loss (DAPO)."""
    overlong_buffer: NonNegativeInt = 0
    """Tokens before rollout.max_new_tokens over which a length penalty grows (DAPO, eq. 13); 0: no penalty."""
    overlong_penalty: NonNegativeFloat = 1.0
    """Penalty for a response that fills the buffer."""
    format: Literal["", "boxed", "tags"] = ""
    """Rewarded format: boxed (an answer in \\boxed{}), tags (<think>…</think><answer>…</answer>) or '' (none)."""
    format_weight: float = 0.1
    """Reward for a response in that format."""
    length_weight: float = 0.0
    """Weight of the reward for brevity within a group, −1/2 to 1/2, at most 0 if wrong (Kimi k1.5, 2.3.3)."""


@dataclass(frozen=True, kw_only=True)
class PrimeConfig:
    """Implicit reward model of the advantage `prime`."""

    lr: LearningRate = 1e-6
    """Learning rate of the reward model."""
    beta: PositiveFloat = 0.05
    """Scale of the implicit rewards."""


@dataclass(frozen=True, kw_only=True)
class OptimConfig(Section):
    """AdamW, and the split of a rollout into updates."""

    lr: LearningRate = 5e-4
    """Learning rate."""
    betas: Annotated[tuple[float, float], "[0, 1)"] = (0.9, 0.95)
    """Decay rates of AdamW's moments."""
    weight_decay: NonNegativeFloat = 0.0
    """Decoupled weight decay."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning-rate schedule after warm-up: constant, or linear or cosine decay to the end of the run."""
    warmup_steps: NonNegativeInt = 0
    """Optimizer steps of linear warm-up."""
    reset_with_reference: bool = False
    """Begin AdamW's moments anew at each reset of the reference policy (`reset_every` of kl_ref and thermostat), as
    ProRL does."""
    min_lr_ratio: Annotated[float, "[0, 1]"] = 0.0
    """linear, cosine: final learning rate as a share of `lr`."""
    max_grad_norm: NonNegativeFloat = 1.0
    """Gradient-clipping norm; 0: no clipping."""
    mini_batch_size: PositiveInt = 16
    """Prompts per optimizer step."""
    ppo_epochs: PositiveInt = 1
    """Epochs over each rollout, with the same mini-batches."""
    stats: Literal["fresh", "rollout"] = "fresh"
    """Statistics for controllers after the first update of a rollout: fresh (one more forward pass) or rollout."""
    micro_batch_tokens: PositiveInt = 8192
    """Tokens per micro-batch, padding included. Affects speed and memory, never the update."""
    layout: Literal["padded", "packed", "shared"] = "padded"
    """Batch layout: padded, packed (no padding) or shared (each prompt computed once for its group)."""

    def _contradictions(self) -> Iterator[str]:
        if self.min_lr_ratio and self.lr_schedule == "constant":
            yield "optim.min_lr_ratio needs optim.lr_schedule linear or cosine: a constant rate has no end"


@dataclass(frozen=True, kw_only=True)
class EngineConfig(Section):
    """Training engine, and the sharding of the model over processes."""

    name: Literal["torch", "deepspeed"] = "torch"
    """torch (one process) or deepspeed (any number of ranks, see nproc)."""
    zero_stage: Annotated[int, "[0, 3]"] = 2
    """deepspeed: ZeRO stage; shards nothing (0), optimizer states (1), also gradients (2), also weights (3)."""
    offload_optimizer: bool = False
    """deepspeed: keep optimizer states in CPU memory; needs zero_stage 1 or higher."""
    offload_param: bool = False
    """deepspeed: keep weights in CPU memory while unused; needs zero_stage 3."""
    bf16: bool = False
    """deepspeed: bf16 weights and activations, fp32 master weights; needs zero_stage 1 or higher. torch: fp32 weights,
    bf16 products (autocast) everywhere but in the output layer; on a CPU that is slow in bf16, fp32 products of numbers
    rounded to bf16."""
    ddp_timeout: PositiveFloat = 1800.0
    """deepspeed: timeout of collectives in seconds; must exceed rollout.timeout."""
    gradient_checkpointing: bool = False
    """Store only each layer's input and recompute the rest in the backward pass: about a third more work."""
    torch_compile: bool = False
    """Compile each layer with torch.compile for the learner's passes; needs zero_stage 2 or lower, and on a CPU a C++
    compiler."""
    deepspeed: dict[str, Any] = field(default_factory=dict)
    """Additional keys of DeepSpeed's configuration, which override those derived from the settings above; only in a
    --config file."""

    def _contradictions(self) -> Iterator[str]:
        least = {"offload_optimizer": 1, "offload_param": 3, "bf16": 1, "deepspeed": 0}
        for key, stage in least.items():
            if getattr(self, key) and self.name == "torch" and key != "bf16":
                yield f"engine.{key} needs engine.name deepspeed"
            if getattr(self, key) and self.name == "deepspeed" and self.zero_stage < stage:
                yield f"engine.{key} needs engine.zero_stage {stage} or higher; got {self.zero_stage}"
        if self.torch_compile and self.name == "deepspeed" and self.zero_stage == 3:
            yield "engine.torch_compile needs engine.zero_stage 2 or lower; got 3"


@dataclass(frozen=True, kw_only=True)
class EvalConfig(Section):
    """Evaluation on held-out problems."""

    every: NonNegativeInt = 10
    """Rollout steps between evaluations; 0 disables evaluation."""
    k: PositiveInt = 8
    """k of avg@k and pass@k."""
    samples: Annotated[int, "[1, 65536]"] = 8
    """Responses per problem, at least k."""
    settings: str = ""
    """Paper whose sampling settings each benchmark uses, k and samples included; see `llmtrain eval --help`. '': sample
    as in rollouts."""
    max_samples: NonNegativeInt = 0
    """settings: upper limit for responses per problem and for k; 0: none."""
    temperature: NonNegativeFloat | None = None
    """Sampling temperature, overriding that of `settings` or rollouts; 0: greedy decoding."""
    top_p: Annotated[float | None, "(0, 1]"] = None
    """Nucleus-sampling threshold, overriding that of `settings`."""
    max_new_tokens: PositiveInt | None = None
    """Maximum response length in tokens, overriding that of `settings` or rollouts."""

    def _contradictions(self) -> Iterator[str]:
        if self.max_samples and not self.settings:
            yield "eval.max_samples limits the samples of eval.settings: without it set eval.samples"


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """Checkpoints to keep, of those written every `save_every` steps; the others are removed."""

    keep_last: PositiveInt = 2
    """Number of most recent checkpoints to keep."""
    keep_every: NonNegativeInt = 0
    """Also keep checkpoints at every multiple of this number of rollout steps; 0: none."""
    keep_best: str = ""
    """Also keep the checkpoint with the highest value of this metric, such as eval/avg@8; '': none."""


AtLimit = Literal["warn", "skip", "stop", "roll_back"]
"""Action at a limit: see training/guard.py."""


@dataclass(frozen=True, kw_only=True)
class GuardConfig:
    """Limits on an update, and the action beyond them: warn, skip the update, stop with a checkpoint, or roll back to
    the last checkpoint and lower the learning rate. 0 disables a limit."""

    non_finite: Literal["skip", "stop", "roll_back"] = "stop"
    """Action on a NaN or infinite loss or gradient; such an update is never taken. For entropy and mismatch: stop or
    roll back."""
    loss: AtLimit = "warn"
    """Action if the absolute loss of an update exceeds loss_above."""
    loss_above: NonNegativeFloat = 0.0
    """Upper limit for the absolute loss of an update."""
    grad_norm: AtLimit = "warn"
    """Action if a gradient norm, before clipping, exceeds grad_norm_above."""
    grad_norm_above: NonNegativeFloat = 0.0
    """Upper limit for the gradient norm."""
    entropy: AtLimit = "warn"
    """Action if the mean entropy of a rollout is below entropy_below or above entropy_above; skip omits its updates."""
    entropy_below: NonNegativeFloat = 0.0
    """Lower limit for the mean entropy (nats)."""
    entropy_above: NonNegativeFloat = 0.0
    """Upper limit for the mean entropy (nats)."""
    mismatch: AtLimit = "stop"
    """Action if mismatch/logp_gap between sampler and trainer exceeds mismatch_above; skip omits the rollout's updates.
    """
    mismatch_above: NonNegativeFloat | None = None
    """Upper limit for mismatch/logp_gap (nats). None: 0.05, or 0.2 if one of the two computes in bf16; with staleness
    or partial rollouts, whose responses are of earlier weights, none after the proof of the weights sent."""
    lr_factor: Annotated[float, "(0, 1]"] = 0.5
    """roll_back: factor applied to the learning rate at each roll-back."""
    roll_backs: PositiveInt = 3
    """roll_back: maximum number of roll-backs; then the run stops."""

    def limits(self, name: str) -> bool:
        """Return True if the quantity of this name has a limit."""
        return any(getattr(self, f"{name}_{end}", 0.0) != 0.0 for end in ("above", "below"))

    def does(self, policy: str) -> list[str]:
        """Return the names of the settings that have this policy."""
        names = ("non_finite", *(name for name in ("loss", "grad_norm", "entropy", "mismatch") if self.limits(name)))
        return [f"guard.{name}" for name in names if getattr(self, name) == policy]


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """Destinations of the metrics besides the run log, and probes."""

    tensorboard: bool = True
    """Write event files to <out>/tensorboard."""
    wandb: bool = False
    """Log to Weights & Biases, which must be installed."""
    wandb_project: str = "llmtrain"
    """Weights & Biases project."""
    probes: NonNegativeInt = 0
    """Probes: held-out questions, the first ones, that are answered every `probe_every` steps with the same random
    numbers each time, and logged token by token in <out>/probes.jsonl.gz; 0: none. They never change the training."""
    probe_every: PositiveInt = 10
    """Rollout steps between two answers to the probes."""
    probe_samples: Annotated[int, "[2, 65536]"] = 4
    """Responses per probe."""


@dataclass(frozen=True, kw_only=True)
class ProfileConfig:
    """Traces of torch's profiler, in <out>/trace."""

    steps: Annotated[tuple[int, ...], "[0, inf)"] = ()
    """Rollout steps to trace, from 0."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Train a policy by reinforcement learning with verifiable rewards, under an entropy controller."""

    out: str = "runs/train"
    """Output folder for run log and checkpoints."""
    overwrite: bool = False
    """Replace an existing run in `out`."""
    seed: Seed = 0
    """Seed of all randomness during training."""
    steps: Annotated[int, "[1, 100000000]"] = 160
    """Rollout steps."""
    save_every: PositiveInt = 20
    """Rollout steps between checkpoints; `checkpoint` says which are kept."""
    controller: str = "grpo"
    """Entropy controllers by name, joined with +; `python -m entrostat list` shows them and those of plug-ins."""
    controller_preset: Literal["paper", "released"] = "paper"
    """paper (values as published) or released (as in the authors' code)."""
    controller_args: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters of the controllers; on the command line `--set kp=2 --set steer.lambda_min=0.7`."""
    target: float | None | str = None  # noqa: RUF036 (on command lines None is read before text)
    """Entropy to hold (nats), for controllers that have a target, or a schedule of it, such as
    `linear(0.65, 0.15, 400)` and `0.4x`, which is 0.4 times the entropy of the first rollout."""
    advantage: str = "grpo"
    """grpo, dr_grpo, rloo, reinforce_pp, opo, qae, max_rl, pass_at_k, optimal_token, gdpo (each term of the reward
    by itself), rae (running mean of the source), remax (a greedy response more to each prompt), w_reinforce, psr, nsr,
    prime (a reward model learns along), that of a plug-in, or module:function. Hyperparameters follow the name:
    `qae k=0.6`."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Device of the policy: cpu or cuda."""
    threads: Annotated[int, "[0, 4096]"] = 0
    """CPU threads per process; 0: torch's default, at most the cores that this process may use, and no more than help a
    small model."""
    nproc: Annotated[int, "[1, 65536]"] = 1
    """Ranks to start, one per GPU, on this machine or on the Ray cluster. Keep it at 1 under torchrun."""
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
        """Optimizer steps per rollout step; fewer if dynamic sampling does not find all groups."""
        return self.optim.ppo_epochs * self.rollout.prompts // self.optim.mini_batch_size

    @property
    def total_updates(self) -> int:
        """Optimizer steps of the whole run, over which a learning-rate schedule extends."""
        return self.steps * self.updates

    @property
    def adapter_rank(self) -> int:
        """Rank of the LoRA adapters sent to rollout engines; 0: whole weights are sent."""
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
        return self.rollout_engines * self.rollout.tensor_parallel_size if apart else 0

    @property
    def rollout_engines(self) -> int:
        """Number of rollout engines on a Ray cluster."""
        shared = self.topology.placement == "colocated" and self.device == "cuda"
        most = max(1, self.nproc // self.rollout.tensor_parallel_size) if shared else 1
        return self.topology.rollout_engines or most

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", plain_target(self.target))
        object.__setattr__(self, "controller_args", plain(self.controller_args))
        check_fields(self)
        check_target(self.target)
        raise_all(self._contradictions())

    def contradictions(self) -> Iterator[str]:
        """Yield what in all settings cannot work together."""
        for section in vars(self).values():
            if isinstance(section, Section):
                yield from section._contradictions()
        yield from self._contradictions()

    def _contradictions(self) -> Iterator[str]:
        """Yield what in these settings cannot work together."""
        if not self.out:
            yield "out is empty: name the folder of the run"
        if self.model.path is None and self.model.hidden_size % (2 * self.model.num_heads):
            yield (
                f"model.num_heads {self.model.num_heads} must divide model.hidden_size {self.model.hidden_size} "
                "into heads of even width"
            )
        if self.rollout.prompts % self.optim.mini_batch_size:
            size = self.optim.mini_batch_size
            yield f"optim.mini_batch_size {size} must divide rollout.prompts {self.rollout.prompts}"
        late = self.topology.staleness or self.rollout.partial_tokens
        if late and (isinstance(self.rollout.temperature, str) or self.rollout.train_at_one):
            yield (
                "rollout.temperature as a schedule, and rollout.train_at_one, need responses of the present step: set "
                "topology.staleness and rollout.partial_tokens to 0"
            )
        if late and isinstance(self.rollout.n, str):
            yield (
                "rollout.n as a schedule needs responses of the present step: set topology.staleness and "
                "rollout.partial_tokens to 0"
            )
        if late and self.data.curriculum:
            yield (
                "data.curriculum needs verdicts before it draws again: set topology.staleness and "
                "rollout.partial_tokens to 0"
            )
        batch, made = self.rollout.gen_batch_size or self.rollout.prompts, self.task.train_problems
        if self.data.curriculum and not self.data.train_files and batch > made:
            yield (
                f"data.curriculum draws {batch} different questions for a batch: raise task.train_problems {made}, or "
                "lower rollout.prompts"
            )
        if self.data.curriculum and not self.reward.verdict_weight:
            yield "data.curriculum goes by verdicts, which reward.verdict_weight 0 leaves out of the training"
        if self.reward.overlong_buffer > self.rollout.max_new_tokens:
            yield "reward.overlong_buffer must not exceed rollout.max_new_tokens"
        if self.eval.samples < self.eval.k:
            yield f"eval.samples {self.eval.samples} must not be below eval.k {self.eval.k}"
