"""The figure of a run."""

import numpy as np
import pytest
from matplotlib.image import imread

from entrostat.about.colours import BASELINE, PALETTE, colour_of
from toybandit import Config, simulate
from toybandit.figures import controller_of, entropy_figure, series_styles


def test_figure_changes_with_target(tmp_path):
    images = []
    for target in (None, 0.6):
        trajectory = simulate(Config(controller="entropic", target=target, states=3, rollouts=4), [0, 1])
        entropy_figure(trajectory, tmp_path / "entropy.png")
        images.append(imread(tmp_path / "entropy.png"))
    assert images[0].shape[:2] == (750, 1050)
    assert not np.array_equal(*images)


def test_a_run_beside_it_is_drawn_and_labelled(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("toybandit.figures.label_ends", lambda axes, ends: drawn.append((axes, ends)))
    small = {"states": 3, "rollouts": 4}
    ours = simulate(Config(controller="entropic", target=0.6, **small), [0, 1])
    entropy_figure(ours, tmp_path / "entropy.png", simulate(Config(**small), [0, 1]))
    (above, entropies), (below, rewards) = drawn
    assert [end.name for end in entropies] == ["entropic", "grpo", "target"]
    assert [end.name for end in rewards] == ["entropic", "grpo"]
    assert [end.colour for end in rewards] == [colour_of("entropic"), BASELINE]
    for axes, ends in ((above, entropies), (below, rewards)):
        lines = {line.get_color(): tuple(line.get_xydata()[-1]) for line in axes.lines}
        assert {colour: y for colour, (_, y) in lines.items()} == {end.colour: end.at[1] for end in ends}
    assert [end.colour for end in entropies][:2] == [end.colour for end in rewards]


@pytest.mark.parametrize(
    ("series", "controller"),
    [
        ("GRPO", "grpo"),
        ("default .2/.2", "grpo"),
        ("Clip-Higher .2/.28", "clip_higher"),
        ("OPEFO, exact", "opefo"),
        ("entropy bonus", "entropy_bonus"),
        ("Ada-Ent-Reg", "adaptive_entropy"),
        ("A ≤ 0 only", "negative_only"),
        ("positives, no clip", "positive_only"),
        ("STEER's Ω", None),
        ("τ = 0.5", None),
        ("", None),
    ],
)
def test_series_are_named_after_controllers(series, controller):
    assert controller_of(series) == controller


def test_no_colour_of_a_controller_is_given_to_another_series():
    found = series_styles(["M = 1", "thermostat", "M = 2", "GRPO"])
    assert [style.colour for style in found] == [PALETTE[1], colour_of("thermostat"), PALETTE[2], BASELINE]


def test_two_lines_of_one_controller_have_two_dashes():
    first, second = series_styles(["OPEFO", "OPEFO, exact"])
    assert first.colour == second.colour
    assert first.dash != second.dash
