"""flexible_clip against numbers worked out by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entrostat import StepStats, Tokens, make

OLD = torch.tensor([0.1, 0.8], dtype=torch.float64)


def bounds(done: float, **settings) -> tuple[list[float], list[float]]:
    """The clip range of two tokens after this share of 100 rollouts."""
    controller = make("flexible_clip", **settings)
    controller.observe(StepStats(entropy=1.0, step=round(100 * done), total_steps=100))
    plan = controller.plan(Tokens(logp=OLD.log(), old_logp=OLD.log(), advantage=torch.ones(2).double()))
    return plan.clip_low.expand(2).tolist(), plan.clip_high.expand(2).tolist()


PLAIN = ([0.8, 0.8], [1.2, 1.2])
UPPER = [1.5 / (1 + 0.25 * p) for p in (0.1, 0.8)]
LOWER = [0.7 / (1 - 0.13 * p) for p in (0.1, 0.8)]


@pytest.mark.parametrize(
    ("done", "settings", "low", "high"),
    [
        (0.0, {}, PLAIN[0], UPPER),
        (0.25, {}, PLAIN[0], [1.35 / (1 + 0.125 * p) for p in (0.1, 0.8)]),
        (0.5, {}, *PLAIN),
        (0.75, {}, [0.75 / (1 - 0.065 * p) for p in (0.1, 0.8)], PLAIN[1]),
        (1.0, {}, *PLAIN),
        (0.0, {"variant": "did"}, *PLAIN),
        (0.5, {"variant": "did"}, PLAIN[0], UPPER),
        (0.75, {"variant": "did"}, [0.75 / (1 - 0.065 * p) for p in (0.1, 0.8)], UPPER),
        (0.3, {"variant": "wide_upper"}, PLAIN[0], UPPER),
        (0.3, {"variant": "wide_lower"}, LOWER, PLAIN[1]),
        (0.3, {"variant": "wide_lower", "lower_slope": 0.0, "lower_start": 0.2}, *PLAIN),
    ],
)
def test_bounds(done, settings, low, high):
    found = bounds(done, **settings)
    assert found[0] == pytest.approx(low, rel=1e-12)
    assert found[1] == pytest.approx(high, rel=1e-12)


@given(old=st.floats(1e-6, 1), new=st.floats(1e-6, 1))
def test_a_token_stops_where_its_ratio_leaves_the_band_around_its_current_probability(old, new):
    for variant, sign in (("wide_upper", 1.0), ("wide_lower", -1.0)):
        p, q = torch.tensor([new]).double(), torch.tensor([old]).double()
        tokens = Tokens(logp=p.log(), old_logp=q.log(), advantage=torch.tensor([sign]).double())
        stopped = make("flexible_clip", variant=variant).plan(tokens).clipped(p.log()).item()
        excess = (new / old - 1) - (0.5 - 0.25 * new) if sign > 0 else (1 - new / old) - (0.3 - 0.13 * new)
        if abs(excess) > 1e-9:
            assert stopped == (excess > 0)


def test_the_strategies_need_the_length_of_the_training():
    with pytest.raises(ValueError, match=r"variant 'id' needs StepStats\.total_steps"):
        make("flexible_clip").observe(StepStats(entropy=1.0))
    make("flexible_clip", variant="wide_upper").observe(StepStats(entropy=1.0))


def test_state_is_restored():
    controller = make("flexible_clip")
    controller.observe(StepStats(entropy=1.0, step=3, total_steps=8))
    other = make("flexible_clip")
    other.load_state_dict(controller.state_dict())
    assert other.state_dict() == controller.state_dict()
