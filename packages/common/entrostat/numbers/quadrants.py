"""STEER, figure 2: the quadrants of advantage and probability."""

from typing import Any, NamedTuple


class Quadrant(NamedTuple):
    """One of the four quadrants."""

    name: str
    tokens: str
    """Tokens in the quadrant, in words."""
    raises: bool
    """True if its tokens raise the entropy, False if they lower it."""


QUADRANTS = {
    "I": Quadrant("exploitation", "A > 0, likely token", raises=False),
    "II": Quadrant("exploration", "A > 0, unlikely token", raises=True),
    "III": Quadrant("suppression", "A < 0, unlikely token", raises=False),
    "IV": Quadrant("correction", "A < 0, likely token", raises=True),
}


def quadrant_masks(advantage: Any, likely: Any, unlikely: Any = None) -> dict[str, Any]:
    """Return masks (..., N) of the tokens in each quadrant, by its name; tokens with A = 0 are in none.

    advantage: (..., N), a tensor or an array, as are the masks. unlikely: None for all tokens that are not likely.
    """
    unlikely = ~likely if unlikely is None else unlikely
    up, down = advantage > 0, advantage < 0
    masks = (up & likely, up & unlikely, down & unlikely, down & likely)
    return {quadrant.name: mask for quadrant, mask in zip(QUADRANTS.values(), masks, strict=True)}
