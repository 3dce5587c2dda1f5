"""The figure of a run."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread

from toybandit import Config, simulate
from toybandit.figures import APART, entropy_figure, label_ends


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
    assert [name for name, *_ in entropies] == ["entropic", "grpo", "target"]
    assert [name for name, *_ in rewards] == ["entropic", "grpo"]
    for axes, ends in ((above, entropies), (below, rewards)):
        lines = {line.get_color(): line.get_ydata()[-1] for line in axes.lines}
        assert lines == {colour: y for _, y, colour in ends}
    assert [colour for *_, colour in entropies][:2] == [colour for *_, colour in rewards]


def test_labels_do_not_cover_each_other():
    axes = Figure().subplots()
    axes.set_ylim(0, 2)
    label_ends(axes, [("b", 1.01, "red"), ("a", 1.0, "blue"), ("c", 1.02, "black"), ("d", 1.9, "green")])
    heights = {text.get_text(): text.xy[1] for text in axes.texts}
    assert list(heights) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(list(heights.values()), [0.5, 0.5 + APART, 0.5 + 2 * APART, 0.95])
