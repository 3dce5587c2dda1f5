"""Checkpoints: everything that changes during training, written atomically.

<run>/checkpoints/step-000020/   model and tokenizer as transformers writes them, state.json and state.tensors, the
                                 engine's shards, and the checksums of all these files in checksums.json

Earlier versions wrote state.pt instead of these three files; their checkpoints are read as well.

All ranks call `save_checkpoint`; rank 0 writes the files, and every rank the shards that only it holds.
"""

import os
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from .checksums import FILE, altered, write_checksums
from .engine import Engine
from .model import is_whole, save
from .plain_state import STRUCTURE, read_state, write_state
from .policy import Policy

NAME = re.compile(r"step-(\d+)")
"""Name of a checkpoint."""
PART, ASIDE = ".part", ".old"
"""Suffixes of a checkpoint that is being written or removed, and of one that is being replaced."""
TRIED = 2**20
"""Bytes that must fit into a folder, otherwise it counts as full."""


def checkpoints(run: str | Path) -> list[Path]:
    """Return the complete checkpoints of a run, oldest first."""
    found = [path for path in (Path(run) / "checkpoints").glob("step-*") if NAME.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=step_of)


def strays(run: str | Path) -> list[str]:
    """Return the names beside the checkpoints of a run that are neither checkpoints nor left by an interrupted save."""
    names = sorted(path.name for path in (Path(run) / "checkpoints").glob("*"))
    return [name for name in names if not NAME.fullmatch(name.removesuffix(PART).removesuffix(ASIDE))]


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
    untrained: Mapping[str, Policy] = MappingProxyType({}),
) -> Path:
    """Write the checkpoint of a run after `step` rollout steps, remove all that `keep` does not return, and return it.

    models: trained models and their engines, by their folders in the checkpoint; the policy's folder is "".
    untrained: models without an engine, by their folders; every rank holds them whole.
    """
    path = Path(run) / "checkpoints" / f"step-{step:06d}"
    part = path.with_suffix(PART)
    ranks = models[""][1].ranks
    writes = ranks.rank == 0
    if writes:
        recover(run)
        for left in path.parent.glob(f"step-*{PART}"):
            shutil.rmtree(left, ignore_errors=True)
        part.mkdir(parents=True)
    ranks.barrier()
    for name, (policy, engine) in models.items():
        save(policy.model, tokenizer, part / name, engine)
        engine.save_shards(part / name)
    for name, policy in untrained.items():
        if writes:
            save(policy.model, tokenizer, part / name)
    ranks.barrier()
    if writes:
        write_state({"step": step, **state}, part)
        write_checksums(part)
        flush(part)
        put(part, path)
        kept = {path, *keep()}
        for old in checkpoints(run):
            if old not in kept:
                left = old.rename(old.with_suffix(PART))  # so that no checkpoint is ever half there
                shutil.rmtree(left)
    ranks.barrier()
    return path


def is_of_the_model(path: Path) -> bool:
    """Return True for a file of a checkpoint that transformers wrote: weights, configuration, tokenizer."""
    return path.is_file() and path.name not in (STRUCTURE, FILE, "state.pt") and path.suffix != ".tensors"


def put(part: Path, path: Path) -> None:
    """Move a written checkpoint into place; one that is there moves aside first, and is removed afterwards."""
    aside = path.with_suffix(ASIDE)
    for left in path.parent.glob(f"step-*{ASIDE}"):
        shutil.rmtree(left, ignore_errors=True)
    if path.exists():
        path.rename(aside)
    part.rename(path)
    shutil.rmtree(aside, ignore_errors=True)


def recover(run: str | Path) -> None:
    """Move checkpoints back that were moved aside by a save that was killed before the new one was in place."""
    for aside in (Path(run) / "checkpoints").glob(f"step-*{ASIDE}"):
        if not aside.with_suffix("").exists():
            aside.rename(aside.with_suffix(""))


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
    if (path / STRUCTURE).is_file():
        try:
            return read_state(path)
        except Exception:  # another program may have written it, with the right checksums
            raise damage(path, STRUCTURE) from None
    try:
        return torch.load(path / "state.pt", weights_only=True)
    except Exception:  # a damaged pickle raises anything
        raise damage(path, "state.pt") from None


def check_whole(path: Path) -> None:
    """Raise ValueError if a file of the checkpoint is missing or not as written; without checksums, if truncated."""
    if (path / STRUCTURE).is_file() or (path / FILE).is_file():
        wrong = altered(path)
    else:  # of an earlier version
        files = (path / "model.safetensors", path / "state.pt", path / "config.json", *sorted(path.rglob("*")))
        whole = any(path.glob("*.safetensors"))
        wrong = next((file.name for file in files[whole:] if not is_whole(file)), "")
    if wrong:
        raise damage(path, wrong)


def check_unaltered(path: Path) -> None:
    """Raise ValueError if a folder is a checkpoint with checksums, and a file of it is missing or not as written."""
    if (path / FILE).is_file() and (wrong := altered(path)):
        raise damage(path, wrong)


def damage(path: Path, name: str) -> ValueError:
    """Return the error for a checkpoint with a damaged file; it names an earlier checkpoint if there is one."""
    others = [other.name for other in checkpoints(path.parent.parent) if step_of(other) < step_of(path)]
    fix = f"remove it to go on from {others[-1]}" if others else "no other is left: start the run anew"
    return ValueError(f"{path} is damaged: {name} is missing or not as it was written; {fix}")
