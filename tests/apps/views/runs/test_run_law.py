"""Law of one run: its points, its forecast, and the texts about both."""

import json

import numpy as np
import pytest
import vl_convert

from entrostat_app.views.runs import run_law
from entrostat_app.views.runs.run_log import Log, Series

H = np.linspace(1.5, 0.05, 60)


def noise(size):
    return size * np.random.default_rng(0).standard_normal(len(H))


def test_points_are_the_steps_that_have_both():
    entropy = Series(np.array([0.0, 1, 2]), np.array([[1.0, 2, 3], [3.0, 4, 5]]))
    reward = Series(np.array([1.0, 2, 7]), np.array([[0.1, 0.2, 0.3]]))
    h, r = run_law.points(Log("a", {}, {"entropy": entropy, "reward": reward}, "done"))
    assert h.tolist() == [3, 4]
    assert r.tolist() == [0.1, 0.2]
    with pytest.raises(ValueError, match="a has not logged both"):
        run_law.points(Log("a", {}, {"entropy": entropy}, "done"))


def test_long_runs_are_thinned():
    n = 10 * run_law.MOST
    both = Series(np.arange(n, dtype=float), np.arange(n, dtype=float)[None])
    h, _ = run_law.points(Log("a", {}, {"entropy": both, "reward": both}, "done"))
    assert len(h) == run_law.MOST
    assert (h[0], h[-1]) == (0, n - 1)


def test_nothing_is_said_against_a_law_that_holds():
    found = run_law.fit(H, 0.7 - 0.1 * np.exp(H) + noise(0.002), 0.5)
    assert found.law.a == pytest.approx(0.1, abs=0.005)
    assert "R = −0.1" in run_law.summary(found)
    assert found.prediction is not None
    assert run_law.coefficients(found).columns.tolist() == ["number", "all points", "first 30"]
    assert run_law.coefficients(found)["all points"][2].startswith(f"{found.law.ceiling:.3f} [")


def test_a_short_beginning_gives_no_forecast():
    found = run_law.fit(H[:10], 0.7 - 0.1 * np.exp(H[:10]), 0.15)
    assert found.prediction is None
    assert len(run_law.contest(found)) == 3
    assert run_law.FORECAST not in json.dumps(run_law.picture(found).spec)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_the_picture_draws(share):
    found = run_law.fit(H, 0.7 - 0.1 * np.exp(H) + noise(0.01), share)
    picture = run_law.picture(found)
    values = json.loads(picture.frame.to_json(orient="records"))
    svg = vl_convert.vegalite_to_svg({**picture.spec, "data": {"name": "empty"}, "datasets": {"empty": values}})
    assert (run_law.FORECAST in svg) == (share == 0.3)
    assert run_law.ALL in svg
    assert svg.count("mark-line") == (2 if share == 0.3 else 1)
