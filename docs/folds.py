"""Hook of MkDocs: sections of the long reference pages are folded; a click or a link to one opens it.

Their Markdown stays flat, so that a reader of the files and a search find everything.
"""

import re
from typing import Any

FOLDED = dict.fromkeys(("commands.md", "controllers.md", "theory.md"), 3)
FOLDED |= dict.fromkeys(
    (
        "findings.md",
        "recipes.md",
        "leaderboard.md",
        "models.md",
        "coverage.md",
        "scale.md",
        "reliability.md",
        "verifiers.md",
        "studies.md",
        "thermostat.md",
    ),
    2,
)
"""Level of the headings whose sections are folded, by page."""
OPEN = ("findings.md",)
"""Pages whose first section stays open: it has the answer."""
ADDED = """<style>
.md-typeset details.fold { border: 0; box-shadow: none; margin: 0; padding-top: 0; background: none; }
.md-typeset details.fold > summary { background: none; margin: 0; padding-top: .2rem; padding-bottom: .2rem; }
.md-typeset details.fold > summary :is(h2, h3) { display: inline; margin: 0; font-size: 1em; }
</style>
<script>
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const fold = target && target.closest("details.fold");
  if (fold && !fold.open) { fold.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", unfold);
addEventListener("load", unfold);
</script>"""


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Return the page's HTML with its sections folded, if it is one of FOLDED."""
    level = FOLDED.get(page.file.src_uri)
    if level is None:
        return html
    first = page.file.src_uri in OPEN
    return folded(html, level).replace('class="fold"', 'class="fold" open', int(first)) + ADDED


def folded(html: str, level: int) -> str:
    """Return HTML in which each heading of a level is the summary of what follows it, up to the next as high."""
    parts = re.split(rf"(?=<h[1-{level}][ >])", html)
    return "".join(_fold(part) if part.startswith(f"<h{level}") else part for part in parts)


def _fold(section: str) -> str:
    heading, end, rest = section.partition(f"</h{section[2]}>")
    return f'<details class="fold"><summary>{heading}{end}</summary>{rest}</details>\n' if rest.strip() else section
