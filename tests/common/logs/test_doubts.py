"""What speaks against a fitted law, by runs of which it is known."""

import re

import numpy as np
import pytest

from entrostat.logs import laws
from entrostat.logs.doubts import doubts

FALLING = np.linspace(1.2, 0.1, 60)
A, B = 0.2, 0.9


def noise(scale, n=60):
    return scale * np.random.default_rng(0).standard_normal(n)


def said(entropy, reward, **told):
    return doubts(laws.fit(entropy, reward), laws.alternatives(entropy, reward), entropy, **told)


def test_a_law_that_holds_is_not_doubted():
    assert said(FALLING, B - A * np.exp(FALLING) + noise(1e-3)) == []


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        (B - A * np.exp(FALLING) + noise(0.5), r"The fit is poor: the law explains \d+% of the variance of reward"),
        (noise(0.1), "The interval of a contains 0|a is not positive"),
        (B + A * np.exp(FALLING) + noise(1e-3), r"a is not positive \(-0\.2\): reward did not rise as entropy fell"),
        (1 - (FALLING - 0.8) ** 2 + noise(1e-3), r"A parabola in H explains \d+% more of the variance"),
    ],
)
def test_a_law_that_does_not_hold(reward, words):
    found = said(FALLING, reward)
    assert any(re.search(words, text) for text in found), found


def test_a_parabola_that_is_hardly_better_is_no_reason():
    """Its information criterion would call it certain: points of a run are not independent."""
    reward = B - A * np.exp(FALLING) + 0.02 * (FALLING - 0.6) ** 2 + noise(1e-3)
    scores = laws.alternatives(FALLING, reward)
    assert scores["exponential"].aic - scores["quadratic"].aic > 10
    assert said(FALLING, reward) == []


def test_entropy_that_hardly_moves_or_stays_far_from_zero():
    still, far = (base + size * np.sin(np.arange(40)) for base, size in ((1.0, 0.01), (1.5, 0.1)))
    assert any("too small to recognise a law" in text for text in said(still, -still))
    assert any("long extrapolation" in text for text in said(far, -far))


def test_a_forecast_that_is_worse_than_a_constant():
    """The reward stands still while the entropy goes on falling: the first points promise a rise that never comes."""
    reward = np.minimum(np.exp(1.2) - np.exp(FALLING), 0.5)
    forecast = laws.predict_end(FALLING, reward)
    found = said(FALLING, reward, prediction=forecast, outcome="score")
    assert any("A constant predicts the rest better than the law does" in text for text in found), found
    assert any(f"an end of {forecast.predicted[-1]:.3g}, which is no score of this run" in text for text in found), (
        found
    )
    right = B - A * np.exp(FALLING) + noise(1e-3)
    assert said(FALLING, right, prediction=laws.predict_end(FALLING, right)) == []


def test_few_points_a_target_and_another_outcome():
    found = said(FALLING[:10], FALLING[:10], outcome="eval/pass@1", target=0.4)
    assert any("only 10 points" in text for text in found)
    assert any("target 0.4 nats" in text for text in found)
    assert any("eval/pass@1 did not rise" in text for text in found)
