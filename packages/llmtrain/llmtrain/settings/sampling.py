"""Sampling settings. No torch."""

from dataclasses import dataclass
from typing import Annotated

from entrostat.settings.allowed import NonNegativeFloat, PositiveInt
from entrostat.settings.field_types import check_fields


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling settings of the responses to a prompt."""

    temperature: NonNegativeFloat = 1.0
    """Sampling temperature; 0: greedy decoding."""
    top_p: Annotated[float, "(0, 1]"] = 1.0
    """Nucleus-sampling threshold: draw from the fewest tokens with at least this total probability."""
    samples: PositiveInt = 1
    """Responses per prompt."""
    max_new_tokens: PositiveInt
    """Maximum response length in tokens, end token included."""

    def __post_init__(self) -> None:
        check_fields(self)
