"""One HTML page of claims: everything in one file, which asks nothing of any host."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from toybandit.claims import CLAIMS

from ..shared.palette import COLOURS
from .claim_grid import Grid, told

FOLDER = Path(__file__).parent
GENERATOR = "entrostat publish"
"""Mark in the page's head, by which a later run knows its own file."""


def page(parts: Sequence[tuple[Grid, list[dict[str, Any]]]]) -> str:
    """Return the page of these grids and their entries."""
    claims = [grid.case.claim for grid, _ in parts]
    ids = [f"{grid.case.claim}.{grid.parameter.key}" for grid, _ in parts]
    links = "".join(f'<li><a href="#{escape(name)}">{escape(name)}</a></li>' for name in ids)
    fields = {
        "GENERATOR": GENERATOR,
        "TITLE": escape(", ".join(dict.fromkeys(claims))),
        "STYLE": _file("page.css").replace("MEASURED", COLOURS[0]).replace("PREDICTED", COLOURS[1]),
        "INDEX": f'<nav aria-label="Claims"><ul>{links}</ul></nav>' if len(parts) > 1 else "",
        "SECTIONS": "\n".join(section(name, *part) for name, part in zip(ids, parts, strict=True)),
        "SCRIPT": _file("page.js"),
    }
    text = _file("page.html")
    for name, value in fields.items():
        text = text.replace(f"<!--{name}-->", value)
    return text


def section(name: str, grid: Grid, entries: list[dict[str, Any]]) -> str:
    """Return the part of one claim: its words, picture, slider and verdict, and its data for the script."""
    claim, parameter = CLAIMS[grid.case.claim], grid.parameter
    at = grid.values.index(grid.start)
    others = {p.symbol or p.label: told(grid.case.start[p.key]) for p in grid.case.trial.parameters if p != parameter}
    label = parameter.label + (f", {parameter.symbol}" if parameter.symbol else "")
    value = f"{entries[at]['value']} {parameter.unit}".strip()
    data = {"unit": parameter.unit, "entries": entries}
    return f"""<section id="{escape(name)}">
<h1>{escape(claim.name)}</h1>
<p class="source">{escape(f"{claim.paper}, {claim.source}")}</p>
<p class="words">{escape(_sentence(claim.words))}</p>
<svg role="img" viewBox="0 0 400 240"></svg>
<div class="control">
<label for="{escape(name)}.slider">{escape(label)}</label>
<span class="value" aria-hidden="true">{escape(value)}</span>
<input type="range" id="{escape(name)}.slider" min="0" max="{len(entries) - 1}" step="1" value="{at}"
aria-valuetext="{escape(value)}" autocomplete="off">
</div>
<div class="verdict" role="status" aria-live="polite">{_verdict(entries[at])}</div>
<div class="more">
<p class="meaning"></p>
<p class="difference"></p>
<p>{escape(_sentence(grid.case.trial.meaning))}</p>
<p>{escape(label)}: {escape(f"{parameter.help} {grid.case.note(parameter.key)}".strip())}</p>
<p>Assumes {escape(claim.assumption)}.{f" Other values: {escape(_listed(others))}." if others else ""}</p>
</div>
<script type="application/json">{_json(data)}</script>
</section>"""


def _verdict(entry: dict[str, Any]) -> str:
    """Return the verdict at the slider's first position, as the script writes it later."""
    if "error" in entry:
        return f"<strong>Not measurable here:</strong> {escape(entry['error'])}"
    return f"<strong>{'Holds' if entry['holds'] else 'Fails'} here:</strong> {escape(entry['because'])}"


def _sentence(text: str) -> str:
    """Return the text with a capital letter and a full stop."""
    text = text if text.endswith(".") else f"{text}."
    return text[:1].upper() + text[1:]


def _listed(values: dict[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _json(data: dict[str, Any]) -> str:
    """Return JSON that cannot end the script element it is in."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _file(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8").strip()
