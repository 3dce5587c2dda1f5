"""Checkpoints: everything that changes during training, written whole or not at all.

<run>/checkpoints/step-000020/   model and tokenizer as transformers writes them, state.pt, and what an engine adds

With several ranks all of them call `save_checkpoint`; the first writes, and each the shards that only it holds.
"""

import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .engine import Engine
from .model import save

KEEP = 2
"""Checkpoints of a run that are kept: the newest."""


def checkpoints(run: str | Path) -> list[Path]:
    """Complete checkpoints of a run, oldest first."""
    return sorted(p for p in (Path(run) / "checkpoints").glob("step-*") if p.suffix != ".part")


def latest(run: str | Path) -> Path:
    """The newest checkpoint of a run; ValueError when there is none."""
    found = checkpoints(run)
    if not found:
        raise ValueError(f"no checkpoint in {Path(run) / 'checkpoints'}")
    return found[-1]


def last_saved(run: str | Path) -> str:
    """Where the newest checkpoint of a run is, in words."""
    found = checkpoints(run)
    return f"last checkpoint: {found[-1]}" if found else "no checkpoint was written yet"


def step_of(checkpoint: Path) -> int:
    """The rollout steps that were done when it was written."""
    return int(checkpoint.name.removeprefix("step-"))


def save_checkpoint(
    run: str | Path,
    step: int,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    state: dict[str, Any],
    engine: Engine,
) -> Path:
    """Write the checkpoint of a run after `step` rollout steps, and remove old ones."""
    path = Path(run) / "checkpoints" / f"step-{step:06d}"
    part = path.with_suffix(".part")
    writes = engine.ranks.rank == 0
    if writes:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    engine.ranks.barrier()
    save(model, tokenizer, part, engine)
    engine.save_shards(part)
    engine.ranks.barrier()
    if writes:
        torch.save({"step": step, "engine": engine.state_dict(), **state}, part / "state.pt")
        shutil.rmtree(path, ignore_errors=True)
        part.rename(path)
        for old in checkpoints(run)[:-KEEP]:
            shutil.rmtree(old)
    engine.ranks.barrier()
    return path


def load_state(path: Path) -> dict[str, Any]:
    """The state that `save_checkpoint` wrote beside the model."""
    return torch.load(path / "state.pt", weights_only=True)
