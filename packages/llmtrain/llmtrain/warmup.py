"""The model a run starts from: a folder that is there, or a small model built and warmed up once."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from .config import TrainConfig
from .model import build_tiny, save
from .nested import to_dict
from .sft import warm_up
from .tasks import get_task
from .tokenizer import build_char_tokenizer

CACHE = Path("runs/.cache")
SHAPE = ("hidden_size", "num_layers", "num_heads", "intermediate_size")
"""Settings of the built model; all others are of how it is trained."""
Progress = Callable[[int, float], None]


def cached_path(config: TrainConfig) -> Path:
    """Where the warmed-up model of this configuration lies: a name made of everything it depends on."""
    shape = {name: getattr(config.model, name) for name in SHAPE}
    key = {"model": {"path": None} | shape, **{part: to_dict(getattr(config, part)) for part in ("task", "sft")}}
    return CACHE / f"sft-{hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]}"


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
    task = get_task(config.task)
    tokenizer = build_char_tokenizer(task.alphabet)
    model = build_tiny(
        len(tokenizer),
        hidden=config.model.hidden_size,
        layers=config.model.num_layers,
        heads=config.model.num_heads,
        kv_heads=config.model.num_heads,
        intermediate=config.model.intermediate_size,
        seed=config.sft.seed,
    )
    sft = config.sft
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
