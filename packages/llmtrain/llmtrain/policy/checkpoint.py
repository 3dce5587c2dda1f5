"""Checkpoints: everything that changes during training, written atomically.

<run>/checkpoints/step-000020/   model and tokenizer as transformers writes them, state.pt, and the engine's shards

All ranks call `save_checkpoint`; rank 0 writes the files, and every rank the shards that only it holds.
"""

import os
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from .engine import Engine
from .model import is_whole, save
from .policy import Policy

TRIED = 2**20
"""Bytes that must fit into a folder, otherwise it counts as full."""


def checkpoints(run: str | Path) -> list[Path]:
    """Return the complete checkpoints of a run, oldest first."""
    return sorted(p for p in (Path(run) / "checkpoints").glob("step-*") if p.suffix != ".part")


def latest(run: str | Path) -> Path:
    """Return the newest checkpoint of a run. Raises ValueError if there is none."""
    found = checkpoints(run)
    if not found:
        raise ValueError(f"no checkpoint in {Path(run) / 'checkpoints'}")
    return found[-1]


def last_saved(run: str | Path) -> str:
    """Return a sentence that names the newest checkpoint of a run."""
    found = checkpoints(run)
    return f"last checkpoint: {found[-1]}" if found else "no checkpoint was written yet"


def step_of(checkpoint: Path) -> int:
    """Return the number of rollout steps done when the checkpoint was written."""
    return int(checkpoint.name.removeprefix("step-"))


def save_checkpoint(
    run: str | Path,
    step: int,
    models: Mapping[str, tuple[Policy, Engine]],
    tokenizer: PreTrainedTokenizerBase,
    state: dict[str, Any],
    keep: Callable[[], Collection[Path]],
) -> Path:
    """Write the checkpoint of a run after `step` rollout steps, remove all that `keep` does not return, and return it.

    models: trained models and their engines, by their folders in the checkpoint; the policy's folder is "".
    """
    path = Path(run) / "checkpoints" / f"step-{step:06d}"
    part = path.with_suffix(".part")
    ranks = models[""][1].ranks
    writes = ranks.rank == 0
    if writes:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    ranks.barrier()
    for name, (policy, engine) in models.items():
        save(policy.model, tokenizer, part / name, engine)
        engine.save_shards(part / name)
    ranks.barrier()
    if writes:
        torch.save({"step": step, **state}, part / "state.pt")
        flush(part)
        shutil.rmtree(path, ignore_errors=True)
        part.rename(path)
        kept = {path, *keep()}
        for old in checkpoints(run):
            if old not in kept:
                shutil.rmtree(old)
    ranks.barrier()
    return path


def unwritable(folder: str | Path) -> str:
    """Return the reason why TRIED bytes cannot be written to a folder, such as a full disk; empty if they can."""
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(TRIED))
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return ""


def flush(folder: Path) -> None:
    """Flush all files of a folder to disk, so that a machine crash cannot leave a checkpoint with empty files."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file)


def load_state(path: Path) -> dict[str, Any]:
    """Return the state that `save_checkpoint` wrote next to the model. Raises ValueError on a damaged checkpoint."""
    check_whole(path)
    return torch.load(path / "state.pt", weights_only=True)


def check_whole(path: Path) -> None:
    """Raise ValueError if a file of the checkpoint is missing or truncated."""
    weights = path.glob("*.safetensors")
    if any(weights) and all(map(is_whole, (path / "state.pt", path / "config.json", *path.rglob("*")))):
        return
    others = [other.name for other in checkpoints(path.parent.parent) if other < path]
    fix = f"remove it to go on from {others[-1]}" if others else "no other is left: start the run anew"
    raise ValueError(f"{path} is damaged: {fix}")
