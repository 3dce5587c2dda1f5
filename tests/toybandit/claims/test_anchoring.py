"""The anchored bonus: what is measured of it, and that it is proportional control."""

import numpy as np
import pytest

from toybandit.claims.anchoring import ALL, TRIED, anchored, drift, near_the_anchor
from toybandit.claims.registry import Effort

EFFORT = Effort(instances=1, runs=4, states=24, rollouts=60)


def test_the_drift_is_from_the_first_rollout():
    run = anchored(EFFORT, "noisy", 0.5, ALL)
    assert (drift(run)[:, 0] == 0).all()
    mean = run.metrics["siren/entropy"] / run.metrics["siren/updates"]
    np.testing.assert_allclose(run.metrics["siren/anchor"][:, 2], mean[:, 0], rtol=1e-12)


@pytest.mark.slow
def test_a_larger_coefficient_rests_nearer():
    ends = [drift(anchored(EFFORT, "noisy", beta, ALL))[:, -10:].mean() for beta in (0.005, 0.05, 0.5, 5.0)]
    assert ends == sorted(ends)
    assert ends[0] < -0.2
    assert abs(ends[-1]) < 0.02
    published, _, strong = TRIED
    assert near_the_anchor(EFFORT, strong)[0].holds
    assert not near_the_anchor(EFFORT, published)[0].holds
