"""Initial model of a run: an existing folder, or a small model built and warmed up once."""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..data.prompts import use_template, within
from ..policy.checkpoint import unwritable
from ..policy.engines import make_engine
from ..policy.model import build_tiny, load, save
from ..policy.policy import Policy
from ..policy.tokenizer import load_tokenizer
from ..process.local_ranks import end_with_parent, is_first
from ..sequences.batch import Batch
from ..settings.config import ModelConfig, TrainConfig
from ..settings.nested import to_dict
from ..tasks import Task, get_task
from .check import check_place, positions_of, prompt_limit
from .supervised import encode, optim, warm_up

CACHE = Path("runs/.cache")
SHAPE = ("hidden_size", "num_layers", "num_heads", "intermediate_size", "max_position_embeddings", "vocab_size")
"""Settings of the built model's shape; the other model settings concern training."""
PUT = (
    "train_files",
    "prompt_key",
    "answer_key",
    "skip_bad",
    "as_chat",
    "chat_template",
    "system_prompt",
    "instruction",
    "max_prompt_length",
)
"""Data settings that a tokenizer and a warm-up depend on."""
WRITTEN = "written.json"
"""File with the names of all files in the folder of a warm-up, which another warm-up may replace."""
Progress = Callable[[int, float], None]


def cached_path(config: TrainConfig) -> Path:
    """Return the path of this configuration's warmed-up model; its name hashes everything that it depends on."""
    shape = {name: getattr(config.model, name) for name in SHAPE}
    key: dict[str, Any] = {"model": {"path": None} | shape, "sft": to_dict(config.sft)}
    if config.sft.loss == "cross_entropy":  # leaves the names of older models as they were
        del key["sft"]["loss"], key["sft"]["gem_beta"]
    if config.data.train_files:
        key["data"] = {name: getattr(config.data, name) for name in PUT}
        if config.data.choice_seed:  # 0 leaves the names of older models as they were
            key["data"]["choice_seed"] = config.data.choice_seed
        key["files"] = [_state_of(name) for name in (*config.data.train_files, config.data.chat_template)]
    else:
        key["task"] = to_dict(config.task)
    return CACHE / f"sft-{hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]}"


def _state_of(name: str) -> list[tuple[str, int, int]]:
    """Return name, size and modification time of a file or of the files in a folder; empty if neither exists."""
    path = Path(name)
    files = [path] if name and path.is_file() else sorted(path.rglob("*")) if name and path.is_dir() else []
    states = ((str(file), file.stat()) for file in files if file.is_file())
    return [(name, state.st_size, state.st_mtime_ns) for name, state in states]


def start_model(config: TrainConfig, progress: Progress | None = None) -> Path:
    """Return the initial model's folder; without `model.path`, a small model is built and warmed up once.

    Raises ValueError, before a warm-up, if the verifier or the reward function of the run cannot be called.
    """
    if config.model.path is not None:
        return Path(config.model.path)
    path = cached_path(config)
    if not path.is_dir():
        with closing(get_task(config)) as task:
            task.try_out(max(config.rollout.group_sizes))
        build_and_warm_up(config, path, progress)
    return path


def build_and_warm_up(
    config: TrainConfig, path: Path, progress: Progress | None = None, together: bool = False
) -> list[float]:
    """Build the small model, or load `model.path`, train it on examples and write it to `path`.

    Returns the losses (nats per token). together: use the configured engine and device, called by all ranks, and
    overwrite `path`; otherwise this process does everything on the CPU and keeps a model that another process has
    written meanwhile.

    Raises ValueError, before a model is built, for a folder that cannot be written and for examples that are too long;
    and if the disk is full when the model is written.
    """
    check_place(path)
    task, sft, losses = get_task(config), config.sft, list[float]()
    tokenizer = first_tokenizer(config.model, task)
    use_template(tokenizer, config.data)
    if sft.steps:
        examples = first_examples(config, task, tokenizer)
    model = first_model(config, len(tokenizer))
    if together:
        model.train().to(torch.device(config.device))
    policy = Policy(model, sft.gem_beta if sft.loss == "gem" else 1.0, layout=config.optim.layout)
    steps = max(sft.steps, 1)
    engine = make_engine(config, policy, optim(sft.lr, steps), steps, alone=not together)
    if sft.steps:
        losses = warm_up(
            policy,
            engine,
            examples,
            steps=sft.steps,
            batch_size=sft.batch_size,
            micro_batch_tokens=config.optim.micro_batch_tokens,
            seed=sft.seed,
            progress=progress,
        )
    part = path.with_name(f"{path.name}.{uuid4().hex[:8]}.part")
    try:
        save(model, tokenizer, part, engine)
        if engine.ranks.rank == 0:
            names = sorted(file.name for file in part.iterdir())
            (part / WRITTEN).write_text(json.dumps([*names, WRITTEN], indent=1) + "\n")
            put(part, path, over=together)
    except Exception:
        if full := unwritable(part.parent):  # otherwise safetensors raises its own error
            raise ValueError(full) from None
        raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    engine.ranks.barrier()
    return losses


def written_files(folder: Path) -> list[str]:
    """Return the names of the files that a warm-up has written into a folder; empty if it has written none."""
    try:
        return [str(name) for name in json.loads((folder / WRITTEN).read_bytes())]
    except (OSError, ValueError, TypeError):
        return []


def put(part: Path, path: Path, over: bool) -> None:
    """Move a written folder to `path`; an existing one stays unless `over` is set."""
    if over:
        shutil.rmtree(path, ignore_errors=True)
    try:
        part.rename(path)
    except OSError:
        if over or not path.is_dir():
            raise


def first_tokenizer(config: ModelConfig, task: Task) -> PreTrainedTokenizerBase:
    """Return the tokenizer of the model to warm up."""
    if config.path is None:
        return task.build_tokenizer(config.vocab_size)
    return load_tokenizer(config.path, config.trust_remote_code)


def first_examples(config: TrainConfig, task: Task, tokenizer: PreTrainedTokenizerBase) -> Batch:
    """Return the warm-up examples. Rows of files that are too long are left out and reported.

    Raises:
        ValueError: for examples longer than the model's limit; with files only if all are too long.
    """
    limit, beyond = positions_of(config.model)
    if config.data.train_files:
        most = prompt_limit(config)
        why = f"their prompts have more than data.max_prompt_length {most} tokens"
        task = replace(task, test=()).keep(partial(within, tokenizer, limit=most), why)
        _tell(*task.skipped)
    examples = encode(tokenizer, task.examples(config.sft))
    longest, total = int(examples.lengths.max()), len(examples)
    if limit is not None and longest > limit:
        fits = (examples.lengths <= limit).nonzero().flatten()
        if not config.data.train_files or not len(fits):
            raise ValueError(f"examples of up to {longest} tokens exceed {beyond}")
        examples = examples.select(fits)
        left_out = f"{total - len(fits):,} of {total:,} worked solutions left out"
        _tell(f"{left_out}: with their prompts they exceed the model's {limit} tokens")
    return examples


def _tell(*lines: str) -> None:
    if is_first():
        print("".join(f"warm-up: {line}\n" for line in lines), end="")


def first_model(config: TrainConfig, tokens: int) -> PreTrainedModel:
    """Return the model to warm up; tokens: vocabulary size of a built one."""
    if config.model.path is not None:
        return load(config.model.path, trust_remote_code=config.model.trust_remote_code)[0]
    return build_tiny(
        tokens,
        hidden=config.model.hidden_size,
        layers=config.model.num_layers,
        heads=config.model.num_heads,
        kv_heads=config.model.num_heads,
        intermediate=config.model.intermediate_size,
        max_positions=config.model.max_position_embeddings,
        seed=config.sft.seed,
    )


def sft_run(config: TrainConfig) -> int:
    """Warm up a model and write it to `config.out`, in one process or as one of several ranks; return the exit code."""
    from .display import WarmUpDisplay

    end_with_parent()
    with WarmUpDisplay(config.sft.steps) if is_first() else nullcontext() as display:
        build_and_warm_up(config, Path(config.out), display, together=True)
    if is_first():
        print(f"done: {config.out}")
    return 0
