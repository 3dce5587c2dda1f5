"""repo_r against numbers worked out by hand."""

from math import log, nan

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entrostat import StepStats, Tokens, make

P = torch.tensor([0.5, 0.01, 0.5, 0.01], dtype=torch.float64)
A = torch.tensor([2.0, 1.0, -1.0, -2.0], dtype=torch.float64)


def weights(**settings) -> list[float]:
    tokens = Tokens(logp=P.log(), old_logp=P.log(), advantage=A)
    return make("repo_r", **settings).plan(tokens).weight.tolist()


def test_weights():
    common, rare = 0.1 * log(0.5), 0.1 * log(0.01)
    assert weights(zeta=0.1) == pytest.approx([1 - common, 1 - rare, 1 + common, 1 + rare], rel=1e-12)
    assert weights(zeta=-0.1) == pytest.approx([1 + common, 1 + rare, 1 - common, 1 - rare], rel=1e-12)
    assert weights(zeta=0.0) == [1, 1, 1, 1]


def test_no_advantage_changes_its_sign():
    assert weights(zeta=1.0)[3] == 0
    assert weights(zeta=-1.0)[1] == 0


def test_what_is_planned_is_the_paper_s_advantage():
    """max(A(1 − ζ log π), 0) if A > 0, min(A(1 + ζ log π), 0) if A < 0."""
    for zeta in (0.3, -0.3):
        up = (A * (1 - zeta * P.log())).clamp(min=0)
        down = (A * (1 + zeta * P.log())).clamp(max=0)
        found = torch.tensor(weights(zeta=zeta), dtype=torch.float64) * A
        torch.testing.assert_close(found, torch.where(A > 0, up, down), rtol=1e-12, atol=0)


def moved(entropies, **settings) -> list[float]:
    controller = make("repo_r", target=0.5, **settings)
    found = []
    for entropy in entropies:
        controller.observe(StepStats(entropy=entropy))
        found.append(float(controller.parts[0].current_zeta))
    return found


def test_zeta_doubles_towards_the_target_and_halves_away_from_it():
    below, above = 0.4, 0.6
    settings = {"zeta": 0.01, "zeta_min": 0.004, "zeta_max": 0.03}
    assert moved([below] * 3, **settings) == pytest.approx([0.02, 0.03, 0.03])
    assert moved([above] * 5, **settings) == pytest.approx([0.005, -0.004, -0.008, -0.016, -0.03])
    assert moved([above, above, above, below, below, below], **settings)[3:] == pytest.approx([-0.004, 0.004, 0.008])
    assert moved([above, nan, above], **settings) == pytest.approx([0.005, 0.005, -0.004])
    assert moved([below], zeta=0.0) == [1e-4]
    assert moved([below, above], adaptive=False) == [0.001, 0.001]


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(-0.1, 0.1))
def test_zeta_stays_within_its_limits(entropies, zeta):
    found = moved(entropies, zeta=zeta)
    assert all(1e-4 <= abs(x) <= 0.05 for x in found)


def test_only_the_adaptive_rule_is_a_closed_loop():
    with pytest.raises(ValueError, match="both closed loops"):
        make("repo_r+entropic", **{"repo_r.target": 0.5})
    make("repo_r+entropic", adaptive=False)


def test_bad_settings():
    with pytest.raises(ValueError, match="zeta_min must not exceed zeta_max"):
        make("repo_r", zeta_min=0.1)
