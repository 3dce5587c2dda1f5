"""The page of all figures."""

import json

import pytest

from toybandit.reproduce.page import write_page


def made(folder, *names):
    for name in names:
        record = {"source": f"source of {name}", "shows": "R < b & more", "found": "so", "command": f"make {name}"}
        (folder / f"{name}.json").write_text(json.dumps(record))
        (folder / f"{name}.png").write_bytes(b"picture of " + name.encode())


def test_every_figure_that_is_there_in_the_order_of_the_list(tmp_path):
    made(tmp_path, "revisiting-3", "entropy-mechanism-2", "entropy-mechanism-1", "of another program")
    write_page(tmp_path / "page.md", tmp_path)
    text = (tmp_path / "page.md").read_text()
    places = [text.index(f"make {name}") for name in ("entropy-mechanism-1", "entropy-mechanism-2", "revisiting-3")]
    assert places == sorted(places)
    assert "another program" not in text
    assert text.count("<tr>") == 2
    assert "R &lt; b &amp; more" in text
    assert (tmp_path / "page/revisiting-3.png").read_bytes() == b"picture of revisiting-3"


def test_a_page_of_nothing_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="holds no figure: name some to make them first"):
        write_page(tmp_path / "page.md", tmp_path)
    assert not list(tmp_path.iterdir())
