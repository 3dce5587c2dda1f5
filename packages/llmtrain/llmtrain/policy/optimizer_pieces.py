"""Optimizer state of DeepSpeed ranks in a checkpoint, as pieces of whole tensors. No pickle.

    optimizer-00002-00000.tensors       of rank 2: {"model.norm.weight/exp_avg/128": (64,), ...}
                                        the numbers 128 to 191 of the flattened first moment of that weight

Every rank writes what it holds, and reads what it needs from the files of all: so a run goes on with any number of
ranks and any ZeRO stage. Moments and, under bf16, the fp32 master weights are written; other weights are the model's.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

MASTER, MOMENTS = "master", ("exp_avg", "exp_avg_sq")
"""Names of fp32 master weights and of AdamW's moments in the files."""
LIMIT = 2**31
"""Bytes after which a rank begins another file; it holds as many in host memory."""


class Piece(NamedTuple):
    """Part of a flattened tensor that a rank holds."""

    key: str
    """Name of the weight, / and the name of its state."""
    start: int
    numbers: Tensor
    """View of the state, (n,)."""


def write_pieces(pieces: Iterable[Piece], folder: Path, rank: int) -> None:
    """Write the pieces that a rank holds into a folder shared by all ranks, created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    held: dict[str, Tensor] = {}
    files = size = 0
    for key, start, numbers in pieces:
        held[f"{key}/{start}"] = numbers.detach().to("cpu", copy=True)
        size += numbers.nbytes
        if size >= LIMIT:
            save_file(held, folder / _name(rank, files))
            held, files, size = {}, files + 1, 0
    if held:
        save_file(held, folder / _name(rank, files))


def _name(rank: int, number: int) -> str:
    return f"optimizer-{rank:05d}-{number:05d}.tensors"


@torch.no_grad()
def read_pieces(pieces: Iterable[Piece], folder: Path) -> None:
    """Copy into these pieces what `write_pieces` of all ranks wrote into a folder, by any number of ranks.

    Raises ValueError if the files do not hold all of it.
    """
    with ExitStack() as stack:
        written = defaultdict[str, list[tuple[int, int, Any]]](list)
        for path in sorted(folder.glob("optimizer-*.tensors")):
            file = stack.enter_context(safe_open(path, framework="pt"))
            for name in file.keys():  # noqa: SIM118 (no mapping)
                key, _, start = name.rpartition("/")
                part = file.get_slice(name)
                written[key].append((int(start), int(start) + part.get_shape()[0], part))
        for key, start, numbers in pieces:
            end, copied = start + len(numbers), 0
            for first, last, part in written[key]:
                a, b = max(start, first), min(end, last)
                if a < b:
                    numbers[a - start : b - start].copy_(part[a - first : b - first])
                    copied += b - a
            if copied != len(numbers):
                raise ValueError(f"{folder} holds {copied} of {len(numbers)} numbers of {key}: another model's state")


def held_pieces(model: nn.Module, zero: Any, states: Iterable[str]) -> Iterator[Piece]:
    """Return the pieces of trained weights' states that this rank holds, as views; in stage 0 every rank holds all.

    model: module under DeepSpeed. zero: its ZeRO optimizer, or torch's AdamW in stage 0. states: MASTER, MOMENTS.
    """
    for name, weight in model.named_parameters():
        for state in states if weight.requires_grad else ():
            piece = _held(weight, zero, state)
            if piece and len(piece[1]):
                yield Piece(f"{name}/{state}", *piece)


def _held(weight: Any, zero: Any, state: str) -> tuple[int, Tensor] | None:
    """Return start and numbers of the piece of a weight's state; None if this rank holds none."""
    key = None if state == MASTER else state
    if hasattr(weight, "ds_id"):  # stage 3; the last piece is padded
        numbers, _ = zero._get_fp32_opt_state_partition(weight, release_swap_buffers=True, optim_state_key=key)
        start = zero._get_param_partition_rank(weight) * len(numbers)
        return start, numbers[: max(weight.ds_numel - start, 0)]
    if hasattr(weight, "_hp_mapping"):  # stages 1 and 2
        held = weight._hp_mapping
        return held and (held.lp_fragment_address.start, held.get_hp_fragment(key))
    return 0, zero.state[weight][key].view(-1)


def make_moments(zero: Any, adamw: torch.optim.Optimizer, stage: int, steps: int) -> None:
    """Give a new ZeRO optimizer, and torch's AdamW in it, moments of zeros, as after so many steps."""
    flats = [weight for group in adamw.param_groups for weight in group["params"]]
    for flat in zero.fp32_partitioned_groups_flat if stage == 3 else flats:
        step = torch.tensor(float(steps), device=flat.device)
        adamw.state[flat] = {"step": step, **{moment: torch.zeros_like(flat) for moment in MOMENTS}}
    if stage in (1, 2):
        zero._lazy_init_hp_params_optimizer_state()
