"""docs/predict.md is what the numbers say, and its statistics are what they are said to be."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        yield importlib.import_module("benchmarks.pages.predict")


@pytest.mark.slow
def test_the_page_is_made_of_the_numbers(page, monkeypatch):
    """Rewritten by: python -m benchmarks.pages.predict"""
    before = page.RECORD.read_text()
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == text.partition(page.HEADING)[0].rstrip("\n") + "\n\n" + page.written()
    assert page.RECORD.read_text() == before


def test_the_third_held_aside_is_whole_controllers(page):
    sets = page.sets()
    controllers = {name: {entry.split(" ")[0] for entry in of} for name, of in sets.items()}
    assert not controllers["looked at"] & controllers["held aside"]
    assert len(controllers["held aside"]) == len(controllers["looked at"] | controllers["held aside"]) // 3
    assert set(json.loads(page.names("")[1].read_text())) >= {*sets["looked at"], *sets["held aside"]}


def test_the_ceiling_is_the_correlation_of_other_seeds(page):
    random = np.random.default_rng(0)
    truth = random.normal(size=2000)
    runs, others = (truth[:, None] + 1.5 * random.normal(size=(2000, 3)) for _ in range(2))
    assert page.ceiling(runs) == pytest.approx(np.corrcoef(runs.mean(1), others.mean(1))[0, 1], abs=0.04)


def test_relatives_are_drawn_together(page):
    chosen = ["ppo", "clip_higher", "kl_ref", "kl_ref (beta=0.05)", "steer"]
    groups = page.groups_of(chosen)
    assert [2, 3] in groups
    drawn = []
    page.resampled(chosen, lambda times: drawn.append(times) or np.zeros(len(times)))
    times, itself = drawn
    assert (itself == 1).all()
    assert times.shape == (page.RESAMPLES, len(chosen))
    assert (times[:, 2] == times[:, 3]).all()
    assert (times[:, 2] != times[:, 4]).any()
    assert times[:, [group[0] for group in groups]].sum(1) == pytest.approx(len(groups))


def test_rank_correlations_of_redrawn_entries_are_scipys(page):
    random = np.random.default_rng(0)
    x, y = random.integers(5, size=(2, 9)).astype(float)
    times = random.integers(3, size=(40, 9)).astype(float)
    repeated = [spearmanr(x.repeat(n), y.repeat(n)).statistic for n in times.astype(int)]
    assert page.ranks(x, y, times) == pytest.approx(repeated, abs=1e-12)
    assert page.rank(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_rank_correlation_of_constants_is_not_known(page):
    assert np.isnan(page.rank(np.ones(4), np.arange(4.0)))
    assert page.rank(np.array([1.0, 5.0, 9.0]), np.array([2.0, 3.0, 4.0])) == 1
