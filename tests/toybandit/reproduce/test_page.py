"""The page of all figures, and the page in docs/."""

import json
import re
from pathlib import Path

import pytest

from toybandit.reproduce import FIGURES
from toybandit.reproduce.page import write_page

DOCS = Path(__file__).parents[3] / "docs"


def made(folder, *names):
    for name in names:
        record = {"source": f"source of {name}", "shows": "R < b & more", "found": "so", "command": f"make {name}"}
        record |= {"sample": "2 seeds", "changes_if": "a < b"}
        (folder / f"{name}.json").write_text(json.dumps(record))
        (folder / f"{name}.png").write_bytes(b"picture of " + name.encode())


def test_every_figure_that_is_there_in_the_order_of_the_list(tmp_path):
    made(tmp_path, "revisiting-3", "entropy-mechanism-2", "entropy-mechanism-1", "of another program")
    write_page(tmp_path / "page.md", tmp_path)
    text = (tmp_path / "page.md").read_text()
    places = [text.index(f"make {name}") for name in ("entropy-mechanism-1", "entropy-mechanism-2", "revisiting-3")]
    assert places == sorted(places)
    assert "another program" not in text
    assert text.count("<i>2 seeds. Would change if a &lt; b.</i>") == 3
    assert text.count("<tr>") == 3
    assert "R &lt; b &amp; more" in text
    assert (tmp_path / "page/revisiting-3.png").read_bytes() == b"picture of revisiting-3"


def test_a_page_of_nothing_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="holds no figure: name some to make them first"):
        write_page(tmp_path / "page.md", tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_page_in_docs_states_the_seeds_and_the_errors_of_every_figure():
    text = (DOCS / "figures.md").read_text(encoding="utf-8")
    cells = {re.search("reproduce ([^<]+)</code>", cell)[1]: cell for cell in text.split("<td>")[1:]}
    assert set(cells) == set(FIGURES)
    for name, cell in cells.items():
        sample, changes_if = re.search(r"<i>(.+?)\. Would change if (.+)\.</i>", cell).groups()
        assert re.search(r"\d+ (seeds|tokens)|^Exact", sample), name
        assert changes_if.strip(), name
        assert sample.startswith("Exact") or " ± " in cell, name
