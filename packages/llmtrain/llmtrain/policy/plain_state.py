"""State of a checkpoint as plain data: structure and numbers in state.json, tensors in state.tensors. No pickle.

JSON has no tuples, no keys but text and no tensors, so these are written as {"tuple": [...]}, {"dict": [[key, value]]}
and {"tensor": name in state.tensors}.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

STRUCTURE, TENSORS = "state.json", "state.tensors"
"""The tensors are in the format of safetensors; vLLM takes every file with that ending for weights of the model."""


def write_state(state: dict[str, Any], folder: Path) -> None:
    """Write a state of numbers, text, None, tensors, and lists, tuples and dicts of them.

    Raises TypeError on any other type.
    """
    tensors: dict[str, Tensor] = {}
    structure = json.dumps(_encode(state, tensors))
    save_file(tensors, folder / TENSORS)
    (folder / STRUCTURE).write_text(structure + "\n", encoding="utf-8")


def read_state(folder: Path) -> dict[str, Any]:
    """Return the state that `write_state` wrote, with tensors on the CPU. Raises an Exception if a file is damaged."""
    state: dict[str, Any] = _decode(json.loads((folder / STRUCTURE).read_bytes()), load_file(folder / TENSORS))
    return state


def _encode(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Return a JSON value, and add the tensors in it to `tensors`."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().to("cpu", memory_format=torch.contiguous_format, copy=True)
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[_encode(key, tensors), _encode(item, tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        items = [_encode(item, tensors) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}")


def _decode(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Return the value that `_encode` made this JSON value of."""
    if isinstance(value, list):
        return [_decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {_decode(key, tensors): _decode(item, tensors) for key, item in content}
    return tuple(_decode(item, tensors) for item in content)
