"""One HTML page of sections: everything in one file, which asks nothing of any host."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from ..shared.palette import COLOURS

FOLDER = Path(__file__).parent
GENERATOR = "entrostat publish"
"""Mark in the page's head, by which a later run knows its own file."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """Part of a page."""

    name: str
    """Its id."""
    title: str
    """Its name in the page's title and links."""
    html: str
    scripts: tuple[str, ...]
    """Files in this folder that it needs, in order."""
    told: str
    """Words that the command prints about it; empty: nothing is printed."""


def page(sections: Sequence[Section]) -> str:
    """Return the page of these sections, with links to them if there are several."""
    links = "".join(f'<li><a href="#{escape(s.name)}">{escape(s.title)}</a></li>' for s in sections)
    scripts = dict.fromkeys(script for section in sections for script in section.scripts)
    fields = {
        "GENERATOR": GENERATOR,
        "TITLE": escape(", ".join(section.title for section in sections)),
        "STYLE": _style(),
        "INDEX": f'<nav aria-label="Parts"><ul>{links}</ul></nav>' if len(sections) > 1 else "",
        "SECTIONS": "\n".join(section.html for section in sections),
        "SCRIPT": "\n\n".join(map(_file, scripts)),
    }
    text = _file("page.html")
    for name, value in fields.items():
        text = text.replace(f"<!--{name}-->", value)
    return text


def as_json(data: dict[str, Any]) -> str:
    """Return JSON that cannot end the script element it is in."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _style() -> str:
    """Return the style sheet."""
    return _file("page.css").replace("MEASURED", COLOURS[0]).replace("PREDICTED", COLOURS[1])


def _file(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8").strip()
