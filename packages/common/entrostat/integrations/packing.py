"""Conversion of the padded tensors of other trainers to packed tokens, and a check of the fields they can fill."""

from collections.abc import Iterable, Mapping

from torch import Tensor

from ..controller import Controller


def pack(mask: Tensor, fields: Mapping[str, Tensor | None]) -> dict[str, Tensor]:
    """Return the entries of `fields` at the N true entries of `mask` (B, T), row by row, all (N,), with two of our own.

    A field is (B, T), one number per token, or (B,), one per response; a field that is None is left out. Added are
    `position`, the index of a token within its response, and `turn_id`, that of its run of true entries.
    """
    packed = {}
    for name, value in fields.items():
        if value is not None:
            packed[name] = (value if value.ndim == mask.ndim else value[:, None]).expand(mask.shape)[mask]
    packed["position"] = (mask.cumsum(1) - 1)[mask]
    packed["turn_id"] = turns(mask)[mask]
    return packed


def turns(mask: Tensor) -> Tensor:
    """Return the index of each run of true entries of `mask` (..., T) within its row, from 0: int64 (..., T).

    What separates two runs, such as the tokens of a tool, has the index of the run before it, or −1.
    """
    begins = mask.clone()
    begins[..., 1:] &= ~mask[..., :-1]
    return begins.cumsum(-1) - 1


def unpack(mask: Tensor, values: Tensor) -> Tensor:
    """Return packed values (N,) at the true entries of `mask` (B, T), zero elsewhere: (B, T). Differentiable."""
    return values.new_zeros(mask.shape).masked_scatter(mask, values)


def require_fields(controller: Controller, available: Iterable[str], where: str, hints: Mapping[str, str]) -> None:
    """Raise ValueError if `controller` needs fields of Tokens that `where` cannot fill; names each, with its hint.

    Raises one as well if it sets the sampling temperature: these trainers read theirs once, when they start.
    """
    if controller.temperature is not None:
        raise ValueError(
            f"controller {controller.name!r} sets the sampling temperature of each rollout, and {where} keeps the one "
            "that it started with: train with llmtrain, or hold the entropy by a bonus, such as thermostat"
        )
    missing = sorted(controller.needs - set(available))
    if controller.support is not None and "truncated_entropy" not in (*missing, *available):
        missing.append("truncated_entropy")
    if missing:
        names = ", ".join(f"Tokens.{name}" for name in missing)
        why = "".join(f"; {hints[name]}" for name in missing if name in hints)
        raise ValueError(f"controller {controller.name!r} needs {names}, which {where} does not provide{why}")
