"""A claim as a part of a page: words, picture, slider and verdict."""

from html import escape
from typing import Any

from toybandit.claims import CLAIMS

from ..shared.trial_words import sentence, told
from .claim_grid import Grid
from .whole_page import Section, as_json


def section(grid: Grid, entries: list[dict[str, Any]]) -> Section:
    """Return the part of one claim: its words, picture, slider and verdict, and its data for the script."""
    return Section(
        name=grid.name,
        title=grid.name,
        html=_html(grid, entries),
        scripts=("page.js",),
        told=f"{grid.name} at {len(entries)} values",
    )


def _html(grid: Grid, entries: list[dict[str, Any]]) -> str:
    name, claim, parameter = grid.name, CLAIMS[grid.case.claim], grid.parameter
    at = grid.values.index(grid.start)
    others = {p.symbol or p.label: told(grid.case.start[p.key]) for p in grid.case.trial.parameters if p != parameter}
    label = parameter.label + (f", {parameter.symbol}" if parameter.symbol else "")
    value = f"{entries[at]['value']} {parameter.unit}".strip()
    data = {"unit": parameter.unit, "entries": entries}
    return f"""<section id="{escape(name)}" class="claim">
<h1>{escape(sentence(claim.words))}</h1>
<p class="source">{escape(f"{claim.paper}, {claim.source}: {claim.name}")}</p>
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
<p>{escape(sentence(grid.case.trial.meaning))}</p>
<p>{escape(label)}: {escape(f"{parameter.help} {grid.case.note(parameter.key)}".strip())}</p>
<p>Assumes {escape(claim.assumption)}.{f" Other values: {escape(_listed(others))}." if others else ""}</p>
</div>
<script type="application/json">{as_json(data)}</script>
</section>"""


def _verdict(entry: dict[str, Any]) -> str:
    """Return the verdict at the slider's first position, as the script writes it later."""
    if "error" in entry:
        return f"<strong>Not measurable here:</strong> {escape(entry['error'])}"
    return f"<strong>{'Holds' if entry['holds'] else 'Fails'} here:</strong> {escape(entry['because'])}"


def _listed(values: dict[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())
