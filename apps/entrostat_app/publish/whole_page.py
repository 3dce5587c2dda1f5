"""One HTML page of sections: everything in one file, which asks nothing of any host."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ..shared.palette import COLOURS

FOLDER = Path(__file__).parent
GENERATOR = "entrostat publish"
"""Mark in the page's head, by which a later run knows its own file."""


def page(sections: Mapping[str, str], scripts: Sequence[str]) -> str:
    """Return the page of these sections, HTML by id; scripts: names of files in this folder."""
    links = "".join(f'<li><a href="#{escape(name)}">{escape(name)}</a></li>' for name in sections)
    fields = {
        "GENERATOR": GENERATOR,
        "TITLE": escape(", ".join(sections)),
        "STYLE": _file("page.css").replace("MEASURED", COLOURS[0]).replace("PREDICTED", COLOURS[1]),
        "INDEX": f'<nav aria-label="Parts"><ul>{links}</ul></nav>' if len(sections) > 1 else "",
        "SECTIONS": "\n".join(sections.values()),
        "SCRIPT": "\n\n".join(map(_file, scripts)),
    }
    text = _file("page.html")
    for name, value in fields.items():
        text = text.replace(f"<!--{name}-->", value)
    return text


def as_json(data: dict[str, Any]) -> str:
    """Return JSON that cannot end the script element it is in."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _file(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8").strip()
