"""Verdicts on experiments, and their marks."""

from pathlib import Path

import numpy as np
import pytest

from entrostat_app.views.runs import run_curves
from entrostat_app.views.runs.run_log import Log, Series
from entrostat_app.views.runs.run_verdicts import joined, verdict

ROOT = Path("none")


def fallen(name: str, step: int, low: int) -> Log:
    """Return a run of 60 steps whose entropy is a sixth from `step` on, and least at step `low`."""
    entropy = np.where(np.arange(60) < step, 0.6, 0.1)
    entropy[low:] = 0.05
    return Log(name, {"seed": name}, {"entropy": Series(np.arange(60.0), entropy[None])}, "done")


def test_the_step_of_the_fall_is_marked():
    found = verdict(ROOT, "one", [fallen("one", 20, 50)])
    assert found.sentence == "Entropy fell from 0.6 nats to 0.05 by step 50 (below a third from step 20)."
    assert found.marks == ((20, "fell"),)


def test_an_experiment_is_judged_by_its_mean():
    logs = [fallen("0", 20, 50), fallen("1", 30, 50)]
    whole = joined("both", logs)
    np.testing.assert_allclose(whole.metrics["entropy"].values.mean(0)[25], 0.35)
    assert verdict(ROOT, "both", logs).marks[0] == (30, "fell")


@pytest.mark.filterwarnings("error")
def test_marks_lie_on_the_line_of_their_run():
    groups = {"a": [fallen("a", 20, 50)], "b": [fallen("b", 30, 50)]}
    panels = {"entropy": run_curves.curves(groups, "entropy", "step", 0.0)}
    frame = run_curves.picture(panels, "step", [], 150, {"a": [(20, "fell")]}).frame
    (mark,) = frame[frame["event"].notna()].to_dict("records")
    assert (mark["series"], mark["x"], mark["event"], mark["word"]) == ("a", 20, pytest.approx(0.1), "fell 20")


def test_words_that_would_cover_each_other_are_on_both_sides():
    groups = {name: [fallen(name, step, 55)] for name, step in (("a", 20), ("b", 24), ("c", 40))}
    panels = {"entropy": run_curves.curves(groups, "entropy", "step", 0.0)}
    marks = {name: [(step, "fell")] for name, step in (("a", 20), ("b", 24), ("c", 40))}
    frame = run_curves.picture(panels, "step", [], 150, marks).frame
    marked = frame[frame["event"].notna()]
    assert dict(zip(marked["series"], marked["below"], strict=True)) == {"a": False, "b": True, "c": False}
