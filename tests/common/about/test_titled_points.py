"""Pictures of many entries: each point is in the SVG, with its title."""

from xml.etree import ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from entrostat.about.titled_points import Titled, markdown, save, short

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def axes():
    figure = Figure(figsize=(4, 3))
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot([0.1, 0.2], [1.0, 2.0], "o")
    return axes


def test_each_point_has_its_title_and_changes_no_limits(axes, tmp_path):
    limits = axes.get_xlim(), axes.get_ylim()
    points = [Titled(axes, (0.1, 1.0), "steer <k=8> & more"), Titled(axes, (0.2, 2.0), "kl_ref")]
    save(axes.figure, tmp_path / "new" / "picture.png", points)
    assert (axes.get_xlim(), axes.get_ylim()) == limits
    assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")
    root = ElementTree.parse(tmp_path / "new" / "picture.svg").getroot()
    groups = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    assert [group.find(f"{SVG}title").text for group in groups] == ["steer <k=8> & more", "kl_ref"]
    for group in groups:
        assert len(list(group.iter(f"{SVG}use"))) == 1  # one marker


def test_the_same_picture_is_the_same_file(axes, tmp_path):
    points = [Titled(axes, (0.1, 1.0), "one")]
    found = []
    for folder in ("a", "b"):
        save(axes.figure, tmp_path / folder / "picture.png", [])
        found.append((tmp_path / folder / "picture.svg").read_bytes())
    assert found[0] == found[1]
    save(axes.figure, tmp_path / "a" / "picture.png", points)
    assert (tmp_path / "a" / "picture.svg").read_bytes() != found[0]


def test_markdown_opens_the_svg():
    assert markdown("Reward", "board/entropy.png") == "[![Reward](board/entropy.png)](board/entropy.svg)"


def test_long_names_are_cut_between_words():
    assert short("stare (both_signs=True, other=1.0)") == "stare (both_signs=True, …"
    assert short("kl_ref (beta=0.05)") == "kl_ref (beta=0.05)"
