"""Conversion of the padded tensors of other trainers to packed tokens, and a check of the fields they can fill."""

from collections.abc import Iterable, Mapping

from torch import Tensor

from ..controller import Controller


def pack(mask: Tensor, fields: Mapping[str, Tensor | None]) -> dict[str, Tensor]:
    """Return the entries of `fields` at the N true entries of `mask` (B, T), row by row, and `position`, all (N,).

    A field is (B, T), one number per token, or (B,), one per response; a field that is None is left out. `position` is
    the index of a token within its response.
    """
    packed = {}
    for name, value in fields.items():
        if value is not None:
            packed[name] = (value if value.ndim == mask.ndim else value[:, None]).expand(mask.shape)[mask]
    packed["position"] = (mask.cumsum(1) - 1)[mask]
    return packed


def unpack(mask: Tensor, values: Tensor) -> Tensor:
    """Return packed values (N,) at the true entries of `mask` (B, T), zero elsewhere: (B, T). Differentiable."""
    return values.new_zeros(mask.shape).masked_scatter(mask, values)


def require_fields(controller: Controller, available: Iterable[str], where: str, hints: Mapping[str, str]) -> None:
    """Raise ValueError if `controller` needs fields of Tokens that `where` cannot fill; names each, with its hint."""
    missing = sorted(controller.needs - set(available))
    if controller.support is not None and "truncated_entropy" not in (*missing, *available):
        missing.append("truncated_entropy")
    if missing:
        names = ", ".join(f"Tokens.{name}" for name in missing)
        why = "".join(f"; {hints[name]}" for name in missing if name in hints)
        raise ValueError(f"controller {controller.name!r} needs {names}, which {where} does not provide{why}")
