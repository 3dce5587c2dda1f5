"""Colours of controllers: one for each, the same in every picture, of the explorer and of the documentation.

    colour_of("thermostat (mode=anchor, target=0.26)")      "#0072b2"
    styles(["ppo", "thermostat (mode=bonus)", "thermostat (mode=anchor)"])

The baseline is grey. The controllers that the documentation compares have colours of their own; each of the others has
one of the same colours, found from its name alone, and a dash tells lines of one colour apart.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

BASELINE = "#6e6e6e"
"""Colour of GRPO, and of PPO's clipped surrogate with its advantage."""
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f")
"""Okabe and Ito's colours, which colour-blind people can distinguish; brown for yellow, which is too light on white."""
OWN = {
    "grpo": BASELINE,
    "ppo": BASELINE,
    "thermostat": "#0072b2",
    "entropic": "#56b4e9",
    "kl_ref": "#009e73",
    "clip_higher": "#e69f00",
    "clip_cov": "#d55e00",
    "kl_cov": "#cc79a7",
    "steer": "#8c6d1f",
}
"""Colours of the controllers that the documentation compares."""
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 4), (10, 2), (1, 3), (6, 2, 1, 2, 1, 2))
"""Dash patterns: lengths on and off, in widths of a line; solid first."""


class Style(NamedTuple):
    """Appearance of a line."""

    colour: str
    dash: tuple[int, ...]
    """One of DASHES."""


def colour_of(name: str) -> str:
    """Return the colour of a controller: its name, or a label that begins with one, such as "steer (k=8)".

    The first part of a composition that is not the baseline decides.
    """
    parts = re.findall(r"[a-z]\w*", re.split(r"[(=,:]", name.lower())[0])
    known = [part for part in parts if part in OWN]
    own = [part for part in known if OWN[part] != BASELINE]
    if own or known:
        return OWN[(own or known)[0]]
    return PALETTE[crc32((parts or [name])[0].encode()) % len(PALETTE)]


def styles(names: Sequence[str]) -> list[Style]:
    """Return a style for each line of a picture, in the order of names: colours of `colour_of`, dashes if they meet."""
    met = Counter[str]()
    found = []
    for name in names:
        colour = colour_of(name)
        found.append(Style(colour, DASHES[met[colour] % len(DASHES)]))
        met[colour] += 1
    return found


def linestyle(dash: Sequence[int]) -> object:
    """Return a dash as matplotlib takes it."""
    return "-" if tuple(dash) == DASHES[0] else (0, tuple(dash))
