"""docs/predict.md is what the numbers say, and its statistics are what they are said to be."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

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
    page.resampled(chosen, lambda rows: drawn.append(sorted(rows.tolist())) or 0.0)
    assert all(rows.count(2) == rows.count(3) for rows in drawn)
    assert any(rows.count(2) != rows.count(4) for rows in drawn)


def test_rank_correlation_of_constants_is_not_known(page):
    assert np.isnan(page.rank(np.ones(4), np.arange(4.0)))
    assert page.rank(np.array([1.0, 5.0, 9.0]), np.array([2.0, 3.0, 4.0])) == 1
