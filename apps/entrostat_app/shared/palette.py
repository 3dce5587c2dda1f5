"""Colours and dashes of lines: a controller has its own colour everywhere, other lines have the next that is free."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import cycle

from entrostat import list_controllers
from entrostat.about.colours import BASELINE, DASHES, OWN, PALETTE, Style, colour_of

COLOURS = (*PALETTE, BASELINE)
"""Colours that colour-blind people can distinguish, on light and dark backgrounds."""
TARGET = "currentColor"
"""Colour of targets: that of the text, on light and dark backgrounds."""
CONTROLLERS = frozenset(OWN).union(list_controllers())


def styles(names: Sequence[str]) -> list[Style]:
    """Return a style for each line of a picture, in the order of names.

    Controllers, and runs named after one, have the colour of `entrostat.about.colours`, and a dash tells lines of one
    controller apart. Each other line has a dash of its own. Targets are never solid.
    """
    own = [own_colour(name) for name in names]
    free = cycle([colour for colour in COLOURS if colour not in own] or COLOURS)
    met = Counter[str | None]({TARGET: 1})
    found = []
    for chosen in own:
        found.append(Style(chosen or next(free), DASHES[met[chosen] % len(DASHES)]))
        met[chosen] += 1
    return found


def own_colour(name: str) -> str | None:
    """Return the colour of a line named after a controller, such as "runs/steer-seed1", or of a target; else None."""
    words = re.findall(r"[a-z]\w*", re.split(r"[(=,:]", name.lower())[0])
    if words[:1] == ["target"]:
        return TARGET
    return None if CONTROLLERS.isdisjoint(words) else colour_of(name)
