"""Models that a run reads whenever it starts: the one its LoRA updates lie beside, and its reference policy.

Checkpoints remember where they lay at first, and their weights: a resumed run goes on with the same or not at all.
"""

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..process.local_ranks import is_first
from ..settings.config import TrainConfig

Bases = dict[str, dict[str, str]]
"""By what it is to the run: the folder of a model, and a digest of its weights, which the first rank knows."""


def find_bases(config: TrainConfig, needs: Collection[str], source: Path, state: dict[str, Any] | None) -> Bases:
    """Those of a run that starts from the model or, with the state that lies there, the checkpoint in `source`.

    needs: fields of Tokens that its controller asks for. ValueError when one that the run began with is gone, or has
    other weights, which the first rank looks at.
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
            raise ValueError(f"{source} does not tell the {name} model that the run began with: start the run anew")
        folder = Path(bases[name]["folder"])
        if not folder.is_dir():
            raise ValueError(f"{folder}, the {name} model of the run, is gone: put it back")
        if _digest(folder) not in ("", bases[name]["weights"]):
            raise ValueError(
                f"{folder}, the {name} model of the run, has other weights than at its start: put those back"
            )
    return bases


def _digest(folder: Path) -> str:
    """Of the weights in the folder of a model, on the first rank."""
    if not is_first():
        return ""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")]):
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()
