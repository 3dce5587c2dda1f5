"""Page of all figures: each with its content, findings and command."""

import html
import json
import shutil
from pathlib import Path

from . import FIGURES, OUT_OF_REACH
from .registry import in_order

INTRODUCTION = """# Figures of the papers, reproduced in a bandit

The command under a picture makes it. It also writes the picture's table (CSV), its numbers and an SVG.
`toybandit reproduce all --page docs/figures.md` makes all pictures and this page.
If the bandit does not show the paper's result, the text says so.

- ± is one standard error over seeds. For fits and correlations it comes from the jackknife.
- Bands and whiskers reach two standard errors to either side, unless the text gives another range.
- a < b means that the two differ by at least two standard errors of their paired difference; a ≈ b, that they do not.
"""


def write_page(page: Path, folder: Path) -> None:
    """Write `page` from the figures in `folder`, and copy their pictures into a folder beside the page, of its name.

    Raises ValueError if `folder` contains no figure.
    """
    made = [
        name for name in in_order(FIGURES) if (folder / f"{name}.json").exists() and (folder / f"{name}.png").exists()
    ]
    if not made:
        raise ValueError(f"{folder} holds no figure: name some to make them first")
    pictures = page.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in made:
        shutil.copyfile(folder / f"{name}.png", pictures / f"{name}.png")
        record = json.loads((folder / f"{name}.json").read_text())
        rows.append(_row(record, f"{pictures.name}/{name}.png"))
    beyond = "".join(f"| `{name}` | {OUT_OF_REACH[name]} |\n" for name in in_order(OUT_OF_REACH))
    page.write_text(
        f"{INTRODUCTION}\n<table>\n"
        + "\n".join(rows)
        + "\n</table>\n\n## Figures that a bandit cannot show\n\n| figure | reason |\n| --- | --- |\n"
        + beyond
    )


def _row(record: dict[str, str], picture: str) -> str:
    keys = ("shows", "found", "source", "command", "sample", "changes_if")
    shows, found, source, command, sample, changes_if = (html.escape(record[key]) for key in keys)
    return (
        f"<tr>\n<td>\n<b>{source}</b>: {shows}<br>\n"
        f'<img src="{picture}" alt="{shows}" width="100%"><br>\n{found}<br>\n'
        f"<i>{sample}. Would change if {changes_if}.</i><br>\n<code>{command}</code>\n</td>\n</tr>"
    )
