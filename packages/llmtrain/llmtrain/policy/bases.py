"""Models that a run reads at every start: the base model of its LoRA updates, and its reference policy.

Checkpoints record their folders and a digest of their weights; a run resumes only with the same weights.
"""

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..process.local_ranks import is_first
from ..settings.config import TrainConfig

Bases = dict[str, dict[str, str]]
"""Folder of each model and a digest of its weights, by its role (base, reference); rank 0 alone has digests."""


def find_bases(config: TrainConfig, needs: Collection[str], source: Path, state: dict[str, Any] | None) -> Bases:
    """Return the bases of a run that starts from the model, or resumes from the checkpoint, in `source`.

    needs: fields of Tokens that its controller needs. state: state of the checkpoint; None for a new run. Raises
    ValueError if a base of a resumed run is missing or, on rank 0, has other weights than when the run started.
    """
    folders = {}
    if config.model.lora_rank:
        folders["base"] = source
    if "ref_logp" in needs or config.advantage == "prime":
        folders["reference"] = Path(config.model.ref_path or source)
    if state is None:
        return {name: {"folder": str(path.absolute()), "weights": _digest(path)} for name, path in folders.items()}
    bases: Bases = state.get("bases", {})
    for name in folders:
        if name not in bases:
            raise ValueError(f"{source} has no record of the run's {name} model: start the run anew")
        folder = Path(bases[name]["folder"])
        if not folder.is_dir():
            raise ValueError(f"{folder}, the {name} model of the run, is gone: put it back")
        if _digest(folder) not in ("", bases[name]["weights"]):
            raise ValueError(
                f"{folder}, the {name} model of the run, has other weights than at its start: put those back"
            )
    return bases


def _digest(folder: Path) -> str:
    """Return a digest of the weights in a model folder on rank 0; empty on other ranks."""
    if not is_first():
        return ""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")]):
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()
