"""Room on the disk for the checkpoints of a run, checked before it starts."""

import os
import shutil
from pathlib import Path

from ..policy.checkpoint import checkpoints
from ..settings.config import TrainConfig

STATE = 3.0
"""Size of a checkpoint per size of the model in fp32: weights, and two moments of each."""
FULL = 4
"""Bytes per weight in fp32."""


def check_room(config: TrainConfig) -> None:
    """Raise ValueError if the disk of `config.out` has no room for the checkpoints that the run will hold at once.

    The model's size is that of its folder; a model that is built is small.
    """
    if config.model.path is None:
        return
    out, each = Path(config.out), checkpoint_bytes(config, Path(config.model.path))
    written = config.steps // config.save_every + 1
    there = [bytes_of(path) for path in checkpoints(out)]
    at_once = min(config.checkpoint.keep_last + 1, written)  # a new one is whole before an old one goes
    needed = at_once * each - sum(there)
    place = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise ValueError(
            f"{place} has {free / 1e9:.1f} GB free, and the run needs {needed / 1e9:.1f} GB for {at_once} checkpoints "
            f"of {each / 1e9:.1f} GB: write elsewhere with --out, keep fewer with --checkpoint.keep-last, or save "
            "rarely with --save-every"
        )


def checkpoint_bytes(config: TrainConfig, model: Path) -> int:
    """Return about how large a checkpoint of a run is that trains the model in a folder."""
    weights = sum(file.stat().st_size for file in model.glob("*.safetensors"))
    half = any(is_half(file) for file in model.glob("*.safetensors"))
    full = weights * (FULL // 2 if half else 1)
    return int(full * (1.0 if config.model.lora_rank else STATE))


def is_half(file: Path) -> bool:
    """Return True if the first weight of a safetensors file has 16 bits."""
    with file.open("rb") as opened:
        head = opened.read(1 << 16)
    return b'"dtype":"BF16"' in head or b'"dtype":"F16"' in head


def bytes_of(folder: Path) -> int:
    """Return the size of the files in a folder."""
    return sum(os.path.getsize(Path(where) / name) for where, _, names in os.walk(folder) for name in names)
