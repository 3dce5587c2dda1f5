"""Curves: joined runs, smoothing, and the content of the picture."""

import json

import numpy as np
import pytest
import vl_convert

from entrostat_app.views.runs import run_curves
from entrostat_app.views.runs.run_log import Log, Series


def log(name, config=None, **metrics):
    columns = {
        key.replace("__", "/"): Series(np.arange(len(values), dtype=float), np.array(values, dtype=float)[None])
        for key, values in metrics.items()
    }
    return Log(name, config or {}, columns, "done")


def test_metrics_are_grouped_by_their_prefix():
    logs = [log("a", clip__low=[1], entropy=[1], flow__x=[1], reward=[1]), log("b", clip__high=[1], loss=[1])]
    assert run_curves.options(logs) == ["entropy", "reward", "loss", "clip/low", "clip/high", "flow/x"]


def test_runs_that_differ_by_seed_only_are_one_experiment():
    logs = [
        log("s/steer-0", {"seed": 0, "lr": 1, "out": "x"}),
        log("s/steer-1", {"seed": 1, "lr": 1, "out": "y"}),
        log("s/other", {"seed": 1, "lr": 2}),
    ]
    groups = run_curves.experiments(logs)
    assert {name: [log.name for log in group] for name, group in groups.items()} == {
        "s/steer, 2 runs": ["s/steer-0", "s/steer-1"],
        "s/other": ["s/other"],
    }


def test_experiments_that_share_a_name_are_told_apart():
    logs = [
        log(f"seed{seed}/{name}", {"seed": seed, "controller": name}) for seed in (0, 1) for name in ("grpo", "steer")
    ]
    groups = run_curves.experiments(logs)
    assert {name: [log.name for log in group] for name, group in groups.items()} == {
        "seed0/grpo and 1 more": ["seed0/grpo", "seed1/grpo"],
        "seed0/steer and 1 more": ["seed0/steer", "seed1/steer"],
    }


def test_runs_of_the_same_seed_are_not_joined():
    def joined(*configs):
        groups = run_curves.experiments([log(name, config) for name, config in zip("abcd", configs, strict=False)])
        return [[log.name for log in group] for group in groups.values()]

    assert joined({"seed": 0}, {"seed": 1}, {"seed": 0}, {"seed": 1}) == [["a", "b"], ["c", "d"]]
    assert joined({"seeds": [0, 1]}, {"seeds": [1, 2]}, {"seeds": [2, 3]}) == [["a", "c"], ["b"]]
    assert joined({"lr": 1}, {"lr": 1}) == [["a"], ["b"]]


def test_a_run_that_shortens_the_line_of_its_experiment_is_named():
    logs = [log("a", entropy=[1, 2, 3], reward=[1, 2, 3]), log("b", entropy=[3, 6], reward=[3, 6])]
    assert run_curves.shortened({"ab": logs}, ["entropy", "reward"]) == ["ab is drawn up to step 1, where b ends."]
    assert run_curves.shortened({"a": logs[:1], "b": logs[1:]}, ["entropy"]) == []


def test_times_too_large_to_draw_are_left_out():
    huge = log("a", entropy=[3, 2], time__step=[1e308, -1e308])
    assert run_curves.curve("a", [huge], "entropy", "time", 0) is None


def test_smoothing_is_an_exponential_moving_average():
    values = np.array([[1.0, 0.0, 4.0], [2.0, 2.0, 2.0]])
    np.testing.assert_allclose(run_curves.smoothed(values, 0.5), [[1, 0.5, 2.25], [2, 2, 2]])
    assert run_curves.smoothed(values, 0.0) is values


def test_a_band_holds_the_steps_that_all_seeds_have():
    logs = [log("a", entropy=[1, 2, 3]), log("b", entropy=[3, 6])]
    line = run_curves.curve("ab", logs, "entropy", "step", 0.0)
    assert line.x.tolist() == [0, 1]
    assert line.raw.tolist() == [[1, 2], [3, 6]]
    frame = run_curves._frame(line)
    assert frame["value"].tolist() == [2, 4]
    assert frame["low"].tolist() == [1, 2]
    assert frame["high"].tolist() == [3, 6]
    assert run_curves.curve("ab", [*logs, log("c", reward=[1])], "entropy", "step", 0.0) is None


def test_time_and_tokens_add_up_over_the_steps():
    trainer = log("a", entropy=[3, 2, 1], time__step=[2.0, 2.0, 4.0], tokens_per_second=[10, 20, 10])
    assert run_curves.curve("a", [trainer], "entropy", "time", 0).x.tolist() == [2, 4, 8]
    assert run_curves.curve("a", [trainer], "entropy", "tokens", 0).x.tolist() == [20, 60, 100]
    assert run_curves.curve("b", [log("b", entropy=[1])], "entropy", "time", 0) is None


def test_long_lines_are_thinned_and_keep_their_end():
    line = run_curves.curve("a", [log("a", entropy=np.arange(3333))], "entropy", "step", 0.5)
    frame = run_curves._frame(line)
    assert len(frame) <= run_curves.POINTS
    assert frame["x"].iloc[-1] == 3332
    assert frame["raw"].iloc[-1] == 3332


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_the_picture_draws(weight):
    logs = [log("a'\"<b>", entropy=[1, 2, 3], odd__name=[1, 2, 3]), log("b", entropy=[3, 6, 1])]
    groups = {"both": logs, "a'\"<b>": logs[:1]}
    panels = {key: run_curves.curves(groups, key, "step", weight) for key in ("entropy", "odd/name")}
    assert [len(lines) for lines in panels.values()] == [2, 1]
    picture = run_curves.picture(panels, "step", [0.5], 150)
    assert picture.frame["metric"].tolist() == ["entropy"] * 7 + ["odd/name"] * 3
    values = json.loads(picture.frame.to_json(orient="records"))
    svg = vl_convert.vegalite_to_svg({**picture.spec, "data": {"name": "empty"}, "datasets": {"empty": values}})
    assert "target 0.5" in svg
    assert "Entropy H (nats)" in svg
    assert "<b>" not in svg
    assert svg.count("mark-line") == (6 if weight else 3)
