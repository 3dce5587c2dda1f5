"""From the padded tensors of other trainers to packed tokens, and which fields each trainer can fill."""

from collections.abc import Iterable, Mapping

from torch import Tensor

from ..controller import Controller


def pack(mask: Tensor, fields: Mapping[str, Tensor | None]) -> dict[str, Tensor]:
    """The entries of `fields` where `mask` (B, T) is true, row by row: N tokens, with their `position` in the response.

    A field is (B, T), one number a token, or (B,), one a response; None is left out.
    """
    packed = {}
    for name, value in fields.items():
        if value is not None:
            packed[name] = (value if value.ndim == mask.ndim else value[:, None]).expand(mask.shape)[mask]
    packed["position"] = (mask.cumsum(1) - 1)[mask]
    return packed


def unpack(mask: Tensor, values: Tensor) -> Tensor:
    """Packed values (N,) at the true entries of `mask` (B, T), zero elsewhere; differentiable."""
    return values.new_zeros(mask.shape).masked_scatter(mask, values)


def require_fields(controller: Controller, available: Iterable[str], where: str, hints: Mapping[str, str]) -> None:
    """ValueError naming what `controller` needs of Tokens and `where` cannot fill, with a hint for each."""
    missing = sorted(controller.needs - set(available))
    if controller.support is not None and "truncated_entropy" not in (*missing, *available):
        missing.append("truncated_entropy")
    if missing:
        names = ", ".join(f"Tokens.{name}" for name in missing)
        why = "".join(f"; {hints[name]}" for name in missing if name in hints)
        raise ValueError(f"controller {controller.name!r} needs {names}, which {where} does not give{why}")
