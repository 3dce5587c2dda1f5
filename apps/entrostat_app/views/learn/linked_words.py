"""Words of a lesson that are linked to parts of its picture: hover over or tap a word, and the other parts fade.

    "The [entropy](H) of [GRPO](0) falls."     H, R and P: panels; 0, 1, …: runs; T: the target

A style sheet does it, without a script.
"""

import re
from collections.abc import Sequence
from html import escape

from ...shared.palette import COLOURS, styles

LINK = re.compile(r"\[([^]]+)\]\((\w)\)")
BOLD = re.compile(r"\*\*([^*]+)\*\*")
PANELS = "HRP"
TARGET = "T"


def parts(text: str) -> list[str]:
    """Return the parts of the picture that the text links to, in order."""
    return [part for _, part in LINK.findall(text)]


def words(text: str) -> str:
    """Return the text without its links."""
    return LINK.sub(r"\1", text)


def html(text: str) -> str:
    """Return the text as HTML; a linked word can be reached by touch and keyboard."""
    linked = LINK.sub(r'<span class="part" tabindex="0" data-part="\2">\1</span>', escape(text))
    return BOLD.sub(r"<strong>\1</strong>", linked)


def style(scope: str, picture: str, names: Sequence[str]) -> str:
    """Return the style sheet that lights up parts of a Vega picture of stacked panels.

    scope: selector of an element that holds words and picture; picture: selector of the picture's container; names:
    the series in their order, the target last if there is one.
    """
    rules = [
        f"{scope} .part {{ border-bottom: 2px dotted; cursor: pointer }}",
        f"{scope} .part:is(:hover, :focus) {{ outline: 2px solid {COLOURS[5]}; outline-offset: 2px }}",
    ]
    for place, panel in enumerate(PANELS):
        rules.append(_faded(scope, panel, f"{picture} svg g[class$=_group]:not(.concat_{place}_group)"))
    for place, (name, look) in enumerate(zip(names, styles(names), strict=True)):
        part = TARGET if name == "target" else str(place)
        for kind, paint in (("line path", "stroke"), ("area path", "fill"), ("text text", "fill")):
            rules.append(_faded(scope, part, f'{picture} svg .mark-{kind}:not([{paint}="{look.colour}"])'))
    return "\n".join(rules)


def _faded(scope: str, part: str, others: str) -> str:
    """Return the rule that fades `others` while a word of this part is pointed at."""
    return f'{scope}:has([data-part="{part}"]:is(:hover, :focus)) {others} {{ opacity: .15 }}'
