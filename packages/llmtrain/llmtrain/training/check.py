"""Checks of a configuration that need no model and no data file."""

import json
import math
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from entrostat.advantages import REGISTRY, advantage_needs, get_advantage
from entrostat.settings.choosing import unknown
from entrostat.settings.compilers import check_compiler
from entrostat.settings.installation import missing

from ..data.prompts import template
from ..data.row_filter import RowFilter
from ..data.tables import check_name
from ..evaluation.paper_settings import PRESETS, longest_response
from ..policy.gguf_model import PUBLISHED
from ..policy.rates import rate_of
from ..process.devices import check_device
from ..process.local_ranks import world_size
from ..rollout.engine_names import engine_class
from ..rollout.vllm.vllm_start import LORA_RANKS
from ..settings.complaints import raise_all
from ..settings.config import DataConfig, ModelConfig, TrainConfig
from ..tasks import FILES, NO_FILES, generated_task
from ..tasks.rewards import used
from ..verifiers.verifier_registry import named_verifiers
from .advantages import SUPPLIED, needs_greedy, of_tokens
from .room import check_room
from .rules import check_resets, check_rules, check_temperature_loop, keeps_groups, make_controller
from .telemetry import check_sinks

OF_ONE = ("rae", "remax", "w_reinforce", "psr", "nsr")
"""Our advantages that compare with something other than the group."""
OF_VERDICTS = frozenset({"w_reinforce", "psr", "nsr"})
"""Advantages that need rewards of 1 or 0."""

OWNED = {
    "train_batch_size": "optim.mini_batch_size",
    "train_micro_batch_size_per_gpu": "optim.micro_batch_tokens",
    "gradient_accumulation_steps": "optim.micro_batch_tokens",
    "managed_gradient_accumulation": "",
    "gradient_clipping": "optim.max_grad_norm",
    "gradient_allreduce_op": "",
    "optimizer": "optim.lr, optim.betas and optim.weight_decay",
    "scheduler": "optim.lr_schedule and optim.warmup_steps",
    "fp16": "engine.bf16",
    "bf16": "engine.bf16",
    "amp": "engine.bf16",
    "zero_optimization.stage": "engine.zero_stage",
    "zero_optimization.cpu_offload": "engine.offload_optimizer",
    "zero_optimization.cpu_offload_param": "engine.offload_param",
    "zero_optimization.offload_optimizer.device": "engine.offload_optimizer",
    "zero_optimization.offload_param.device": "engine.offload_param",
}
"""DeepSpeed configuration keys that the engine sets itself, and the setting to use instead."""


def check(config: TrainConfig) -> None:
    """Raise ValueError with everything in the configuration that cannot work, before a model is loaded."""
    parts = (
        check_contradictions,
        check_rules,
        check_advantage,
        check_resets,
        check_profile,
        check_task,
        check_evaluation,
        check_probes,
        check_model,
        check_targets,
        check_guard,
        check_temperature_loop,
        *MACHINE,
    )
    require_all(config, parts)


def check_contradictions(config: TrainConfig) -> None:
    """Raise ValueError if settings cannot work together."""
    raise_all(config.contradictions())


def require_all(config: TrainConfig, parts: Sequence[Callable[[TrainConfig], object]]) -> None:
    """Raise ValueError with the complaints of all these checks."""
    complaints: list[str] = []
    for part in parts:
        try:
            part(config)
        except ValueError as error:
            complaints.append(str(error))
        except Exception:  # from settings of which an earlier check complains
            if not complaints:
                raise
    raise_all(complaints)


def check_advantage(config: TrainConfig) -> None:
    """Raise ValueError if the advantage needs what the run has not."""
    if config.advantage.startswith("prime "):
        raise ValueError("advantage prime takes no values after its name: set prime.lr and prime.beta")
    missing = set(advantage_needs(config.advantage)) - {*SUPPLIED}
    if missing and not of_tokens(config.advantage):
        raise ValueError(f"advantage {config.advantage!r} needs {', '.join(sorted(missing))}; llmtrain has none")
    if needs_greedy(config) and (config.topology.staleness or config.rollout.partial_tokens):
        wrong = "topology.staleness" if config.topology.staleness else "rollout.partial_tokens"
        raise ValueError(f"advantage {config.advantage!r} needs a greedy response in each step: leave out {wrong}")
    name, least = config.advantage.partition(" ")[0], min(config.rollout.group_sizes)
    if least < 2 and name in REGISTRY and name not in OF_ONE:
        raise ValueError(
            f"rollout.n must be at least 2 with advantage {name!r}, which is 0 in a group of 1; got {least}"
        )
    if name in ("rae", "remax") and config.rollout.filter_groups:
        raise ValueError(
            f"advantage {name!r} has a signal in groups whose rewards are equal: leave out rollout.filter_groups"
        )
    if name == "pass_at_k":  # whose k must fit the group
        get_advantage(config.advantage)(torch.zeros(least), torch.zeros(least, dtype=torch.int64))
    verdicts = name in OF_VERDICTS or name == "max_rl" or "variant=analytic" in config.advantage
    if verdicts and any(used(config.reward)):
        raise ValueError(
            f"advantage {config.advantage!r} needs rewards of 1 or 0: leave out reward.format, reward.length_weight, "
            "reward.overlong_buffer and reward.function, or use another advantage, such as grpo"
        )


def check_profile(config: TrainConfig) -> None:
    """Raise ValueError if a step to profile is not in the run."""
    if late := [step for step in config.profile.steps if step >= config.steps]:
        raise ValueError(f"profile.steps {late[0]}: the run has rollout steps 0 to {config.steps - 1}")


def check_guard(config: TrainConfig) -> None:
    """Raise ValueError if a guard has a policy that the topology does not have."""
    guard = config.guard
    backs = guard.does("roll_back")
    if backs and (config.topology.name != "local" or config.rollout.name != "hf"):
        raise ValueError(f"{backs[0]} roll_back needs topology.name local and rollout.name hf; use stop")
    if 0 < guard.entropy_above <= guard.entropy_below:
        raise ValueError(
            f"guard.entropy_above {guard.entropy_above:g} must exceed guard.entropy_below {guard.entropy_below:g}"
        )


def check_machine(config: TrainConfig) -> None:
    """Raise ValueError if the configuration cannot work on this machine; also called when a run is resumed."""
    require_all(config, MACHINE)


def check_rate(config: TrainConfig) -> None:
    """Raise ValueError if the schedule of the learning rate cannot work."""
    rate_of(config.optim, config.total_updates)


def check_place_of_run(config: TrainConfig) -> None:
    """Raise ValueError if the device, the compiler or the Ray cluster cannot work."""
    check_device(config.device, here=config.topology.name != "ray")
    if config.engine.torch_compile and config.device == "cpu":
        check_compiler("engine.torch_compile")
    if config.topology.name == "ray":
        from ..rollout.ray.places import check as check_ray

        check_ray(config)


def check_sft(config: TrainConfig) -> None:
    """Raise ValueError if a warm-up into `config.out` cannot work."""
    check_task(config)
    positions_of(config.model)
    check_place(Path(config.out))
    check_ranks(config)
    check_device(config.device)


def check_task(config: TrainConfig) -> None:
    """Raise ValueError if the task cannot work; its files are not read yet."""
    data = config.data
    if config.reward.function and ":" not in config.reward.function:
        raise ValueError(f"reward.function {config.reward.function!r} is no function: give module:function")
    if not data.train_files:
        if config.task.name == FILES:
            raise ValueError(NO_FILES)
        generated_task(config.task)
        if data.verifier != type(data).verifier:
            raise ValueError(
                f"data.verifier {data.verifier} is for files: a task such as {config.task.name} has its own"
            )
    if not data.train_files and data.val_files:
        raise ValueError("data.val_files needs data.train_files; to evaluate on files alone, use llmtrain eval")
    if data.train_files:
        named_verifiers(data.verifier, "data.verifier")
        RowFilter(data.keep)
    for name in (*data.train_files, *data.val_files):
        check_name(name)
    template(data)


def check_evaluation(config: TrainConfig) -> None:
    """Raise ValueError if evaluation is enabled but there are no questions for it."""
    if config.eval.every and not (config.data.val_files if config.data.train_files else config.task.test_problems):
        more = "give data.val_files" if config.data.train_files else "raise task.test_problems"
        raise ValueError(f"nothing to evaluate on: {more}, or set eval.every to 0")
    if config.eval.settings and config.eval.settings not in PRESETS:
        raise ValueError(unknown("eval.settings", config.eval.settings, PRESETS))
    best, every = config.checkpoint.keep_best, config.eval.every
    if best.startswith("eval/") and (not every or config.save_every % every):
        raise ValueError(
            f"checkpoint.keep_best {best} needs an evaluation of every checkpoint: save_every {config.save_every} must "
            f"be a multiple of eval.every, not {every}"
        )


def check_probes(config: TrainConfig) -> None:
    """Raise ValueError if there are no held-out questions for probes."""
    probes, files = config.log.probes, config.data.train_files
    if probes and (not config.data.val_files if files else config.task.test_problems < probes):
        more = "give data.val_files" if files else f"raise task.test_problems to {probes}"
        raise ValueError(f"log.probes {probes} needs as many held-out questions: {more}, or set it to 0")


def check_place(path: Path) -> None:
    """Raise ValueError unless a folder can replace `path`."""
    if path.name in ("", ".."):
        raise ValueError(f"{path} cannot be replaced by a model: choose a folder with a name")
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not os.access(parent, os.W_OK):
        raise ValueError(f"cannot write {path} in {parent}; choose another folder")


def check_model(config: TrainConfig) -> None:
    """Raise ValueError if a model folder is invalid or sequences can exceed its positions."""
    new = config.rollout.max_new_tokens
    limits = [positions_of(config.model)]
    if config.model.ref_path is not None:
        limits.append(positions_of(config.model, "ref_path"))
    if config.data.train_files:
        prompt = prompt_limit(config)
        words = f"data.max_prompt_length {prompt}"
    else:
        task = generated_task(config.task)
        prompt = max(len(question.prompt) for questions in (*task.train, task.test) for question in questions)
        words = f"the prompts of {config.task.name}, of up to {prompt} characters,"
    for limit, beyond in limits:
        if limit is not None and prompt + new > limit:
            raise ValueError(f"{words} plus rollout.max_new_tokens {new} exceed {beyond}")
    if not config.eval.every or (longest := longest_response(config)) <= new:
        return
    if config.rollout.max_model_len:
        limits.append((config.rollout.max_model_len, f"rollout.max_model_len {config.rollout.max_model_len}: raise it"))
    for limit, beyond in limits:
        if limit is not None and prompt + longest > limit:
            raise ValueError(f"{words} plus {longest} tokens in evaluation (eval.max_new_tokens) exceed {beyond}")


def prompt_limit(config: TrainConfig) -> int:
    """Return the longest prompt of a file that is kept (tokens): as set; by default, what the model can hold.

    Raises ValueError if a model folder has no model.
    """
    most = config.data.max_prompt_length
    limits = [positions_of(config.model)[0]]
    if config.model.ref_path is not None:
        limits.append(positions_of(config.model, "ref_path")[0])
    if most != DataConfig.max_prompt_length or not any(limits):
        return most
    new = max(config.rollout.max_new_tokens, longest_response(config) if config.eval.every else 0)
    room = min(limit for limit in limits if limit) - new
    return min(most, room) if room > 0 else most


def check_targets(config: TrainConfig) -> None:
    """Raise ValueError if a target exceeds log V, the greatest entropy of a model with V tokens."""
    targets = {part.name: getattr(part, "target", None) for part in make_controller(config).parts}
    numbers = {name: target for name, target in targets.items() if isinstance(target, int | float)}
    if not numbers:
        return
    tokens = tokens_of(config)
    for name, target in numbers.items():
        if tokens and target > math.log(tokens):
            raise ValueError(
                f"target {target:g} of {name} exceeds {math.log(tokens):.3f} nats, the greatest entropy that a model "
                f"with {tokens} tokens can have: lower it"
            )


def tokens_of(config: TrainConfig) -> int:
    """Return the number of tokens of the run's model, for files an upper limit; 0 if its config.json has none."""
    if config.model.path is not None:
        found: dict[str, Any] = json.loads((Path(config.model.path) / "config.json").read_text())
        return int((found.get("text_config") or found).get("vocab_size") or 0)
    if config.data.train_files:
        return config.model.vocab_size
    return len(generated_task(config.task).build_tokenizer(config.model.vocab_size))


def positions_of(model: ModelConfig, key: str = "path") -> tuple[int | None, str]:
    """Return the longest sequence of the model in `model.<key>` or of the built model, and a phrase for errors.

    The length is in tokens, None if config.json does not name it. Raises ValueError if the folder has no model.
    """
    folder = getattr(model, key)
    if folder is None:
        limit = model.max_position_embeddings
        return limit, f"model.max_position_embeddings {limit} of the built model: raise it or use shorter sequences"
    found = positions(f"model.{key}", Path(folder))
    return found, f"the {found} positions of model.{key} {folder}: use shorter sequences"


def positions(key: str, folder: Path) -> int | None:
    """Return the longest sequence of the model in a folder, in tokens, from its config.json; None if not named there.

    Raises ValueError with the key if there is no model in the folder.
    """
    if not folder.is_dir():
        made = "; get one with: hf download OWNER/NAME --local-dir FOLDER"
        if folder.name in PUBLISHED:
            made = f"; make it with: llmtrain model {folder.name}"
        elif not folder.is_absolute() and len(folder.parts) == 2 and not folder.parent.exists():
            made = f"; of the HF hub: hf download {folder} --local-dir {folder.name}, then --{key} {folder.name}"
        raise ValueError(f"{key}: model folder {folder} does not exist{made}")
    try:
        found: dict[str, Any] = dict(json.loads((folder / "config.json").read_text()))
    except (OSError, TypeError, ValueError):
        raise ValueError(f"{key}: {folder} is not a model folder: it has no valid config.json") from None
    found = found.get("text_config") or found
    limit, rope = found.get("max_position_embeddings"), found.get("rope_scaling") or found.get("rope_parameters") or {}
    if limit is None:
        return None
    return max(limit, int((rope.get("original_max_position_embeddings") or limit) * (rope.get("factor") or 1)))


def check_ranks(config: TrainConfig) -> None:
    """Raise ValueError if the engine cannot run with this number of processes."""
    ranks, engine = world_size(config.nproc), config.engine
    if ranks > 1 and engine.name == "torch":
        raise ValueError(f"the torch engine is one process, not {ranks}: use --engine.name deepspeed")
    for path, ours in OWNED.items():
        if has_key(engine.deepspeed, path.split(".")):
            raise ValueError(f"engine.deepspeed: {path} cannot be set: {f'use {ours}' if ours else 'leave it out'}")
    repeats = config.topology.restarts + (config.topology.elastic_engines > 0)
    wait, answer = engine.ddp_timeout, config.rollout.timeout * (1 + repeats)
    if ranks > 1 and config.topology.name == "ray" and wait <= answer:
        again = f" × {1 + repeats} (restarts and elastic engines repeat requests)" if repeats else ""
        raise ValueError(
            f"engine.ddp_timeout {wait:g} s must exceed rollout.timeout{again} = {answer:g} s, the ranks' longest wait"
        )
    if engine.name == "deepspeed" and find_spec("deepspeed") is None:
        raise ValueError(missing("deepspeed"))


def check_mini_batches(config: TrainConfig) -> None:
    """Raise ValueError unless a mini-batch divides evenly over ranks, in whole groups if they must stay whole."""
    ranks, size = world_size(config.nproc), config.optim.mini_batch_size
    if keeps_groups(config) and size % ranks:
        raise ValueError(
            f"optim.mini_batch_size {size} must be a multiple of the {ranks} ranks: groups stay whole with layout "
            "shared, advantage prime and controllers that need group_id"
        )
    if wrong := [n for n in config.rollout.group_sizes if size * n % ranks]:
        raise ValueError(f"optim.mini_batch_size {size} × rollout.n {wrong[0]} must be a multiple of the {ranks} ranks")


def has_key(settings: Any, path: list[str]) -> bool:
    """Return True if nested settings have the key `path`, or a non-dict at one of its prefixes."""
    if not path or not isinstance(settings, dict):
        return True
    return path[0] in settings and has_key(settings[path[0]], path[1:])


def check_rollout(config: TrainConfig) -> None:
    """Raise ValueError unless the rollout engine is available and supports the configured weight sync."""
    rank, most = config.model.lora_rank, LORA_RANKS[-1]
    vllm = config.rollout.name == "vllm"
    if config.rollout.lora_sync == "adapter" and not (vllm and 1 <= rank <= most):
        raise ValueError(
            f"rollout.lora_sync adapter needs --rollout.name vllm and model.lora_rank from 1 to {most}; use merged"
        )
    direct = config.topology.weight_sync != "object"
    if direct and not (vllm and config.device == "cuda" and not config.adapter_rank):
        raise ValueError(
            f"topology.weight_sync {config.topology.weight_sync} needs --rollout.name vllm, --device cuda and whole "
            "weights; use object"
        )
    engine = engine_class(config.rollout.name)
    if config.rollout.partial_tokens and not engine.continues:
        raise ValueError(
            f"rollout.partial_tokens needs an engine that goes on with responses: {config.rollout.name} has no "
            "`continues`; use hf or vllm, or set it to 0"
        )
    engine.check(config)


MACHINE: tuple[Callable[[TrainConfig], object], ...] = (
    check_rate,
    check_ranks,
    check_mini_batches,
    check_sinks,
    check_rollout,
    check_place_of_run,
    check_room,
)
"""Checks of a run on this machine."""
