"""The picture of the README and the site: its files, and its caption, which tells what `toybandit.picture` gives."""

from pathlib import Path

import numpy as np
from matplotlib.colors import to_rgb
from PIL import Image

from entrostat.about.colours import colour_of
from toybandit.picture import HELD, PLAIN, SEEDS, TARGET, K, Side, sides

DOCS = Path(__file__).parents[2] / "docs"


def test_the_animation_is_below_a_megabyte_and_ends_on_the_whole_picture():
    path = DOCS / "picture/picture.gif"
    assert path.stat().st_size < 1_000_000
    with Image.open(path) as animation:
        assert animation.n_frames > 30
        first = animation.convert("RGB")
        animation.seek(animation.n_frames - 1)
        assert animation.info["duration"] > 2000
        for name in (PLAIN, HELD):
            assert inked(animation.convert("RGB"), name) > inked(first, name)


def inked(picture: Image.Image, name: str) -> int:
    """Return the number of pixels in about the colour of a controller."""
    return int((np.abs(np.asarray(picture) / 255.0 - to_rgb(colour_of(name))) < 0.05).all(-1).sum())


def test_the_caption_is_true():
    plain, held = sides().values()
    text = " ".join((DOCS / "index.md").read_text(encoding="utf-8").split())
    assert f"it ends at {plain.entropy[:, -1].mean():.2f} nats with {told(plain)} and reward {reward(plain)}." in text
    assert f"holds {TARGET:g} nats finds the better one: {told(held)}, reward {reward(held)}." in text
    assert f"means of {len(SEEDS)} seeds" in text


def told(run: Side) -> str:
    """Return pass@K at the end: mean, lowest and highest seed."""
    last = run.passed[:, -1]
    return f"pass@{K} {last.mean():.2f} [{last.min():.2f}, {last.max():.2f}]"


def reward(run: Side) -> str:
    """Return the mean reward at the end."""
    return f"{run.reward[:, -1].mean():.2f}"
