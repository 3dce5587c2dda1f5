"""How responses are drawn. No torch."""

from dataclasses import dataclass
from typing import Annotated

from entrostat.allowed import NonNegativeFloat, PositiveInt
from entrostat.field_types import check_fields


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the responses to a prompt are drawn."""

    temperature: NonNegativeFloat = 1.0
    """Divides the logits; 0 takes the most likely token."""
    top_p: Annotated[float, "(0, 1]"] = 1.0
    """Only the likeliest tokens that together have this probability are drawn from."""
    samples: PositiveInt = 1
    """Responses to each prompt."""
    max_new_tokens: PositiveInt
    """Longest response, end token included."""

    def __post_init__(self) -> None:
        check_fields(self)
