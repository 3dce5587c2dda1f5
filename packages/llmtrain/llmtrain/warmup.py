"""The model a run starts from: a folder that is there, or a small model built and warmed up once."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .config import TrainConfig
from .model import build_tiny, save
from .nested import to_dict
from .sft import warm_up
from .tasks import get_task

CACHE = Path("runs/.cache")
SHAPE = ("hidden_size", "num_layers", "num_heads", "intermediate_size", "max_position_embeddings", "vocab_size")
"""Settings of the built model; all others are of how it is trained."""
PUT = (
    "train_files",
    "prompt_key",
    "answer_key",
    "skip_bad",
    "as_chat",
    "chat_template",
    "system_prompt",
    "instruction",
)
"""Settings of the data that a tokenizer and a warm-up depend on."""
Progress = Callable[[int, float], None]


def cached_path(config: TrainConfig) -> Path:
    """Where the warmed-up model of this configuration lies: a name made of everything it depends on."""
    shape = {name: getattr(config.model, name) for name in SHAPE}
    key: dict[str, Any] = {"model": {"path": None} | shape, "sft": to_dict(config.sft)}
    if config.data.train_files:
        key["data"] = {name: getattr(config.data, name) for name in PUT}
        key["files"] = [_state_of(name) for name in config.data.train_files]
    else:
        key["task"] = to_dict(config.task)
    return CACHE / f"sft-{hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]}"


def _state_of(name: str) -> list[int]:
    """Size and time of change of a file; nothing of what is no file."""
    path = Path(name)
    return [path.stat().st_size, path.stat().st_mtime_ns] if path.is_file() else []


def start_model(config: TrainConfig, progress: Progress | None = None) -> Path:
    """Folder of the model to start from; when the configuration names none, a built one that is warmed up once."""
    if config.model.path is not None:
        return Path(config.model.path)
    path = cached_path(config)
    if not path.is_dir():
        build_and_warm_up(config, path, progress)
    return path


def build_and_warm_up(config: TrainConfig, path: Path, progress: Progress | None = None) -> list[float]:
    """Build the small model, train it on examples, write it to `path`; returns the losses (nats per token)."""
    task = get_task(config)
    tokenizer = task.build_tokenizer(config.model.vocab_size)
    model = build_tiny(
        len(tokenizer),
        hidden=config.model.hidden_size,
        layers=config.model.num_layers,
        heads=config.model.num_heads,
        kv_heads=config.model.num_heads,
        intermediate=config.model.intermediate_size,
        max_positions=config.model.max_position_embeddings,
        seed=config.sft.seed,
    )
    sft, losses = config.sft, list[float]()
    if sft.steps:
        losses = warm_up(
            model,
            tokenizer,
            task.examples(sft),
            steps=sft.steps,
            batch_size=sft.batch_size,
            lr=sft.lr,
            seed=sft.seed,
            progress=progress,
        )
    part = path.with_name(path.name + ".part")
    save(model, tokenizer, part)
    part.rename(path)
    return losses
