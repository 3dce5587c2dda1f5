import pytest
import torch

from entrostat import StepStats, Tokens, make

LOGP = torch.tensor([0.99, 0.99, 0.5, 0.5], dtype=torch.float64).log()
TOKENS = Tokens(logp=LOGP, old_logp=LOGP, advantage=torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64))


def alphas(controller, entropies) -> list[float]:
    seen = []
    for entropy in entropies:
        controller.observe(StepStats(entropy=entropy))
        seen.append(float(controller.parts[0].alpha))
    return seen


def test_pi_sequence():
    """e = .2, .1, −.1: α = Kp·e + Ki·Σe."""
    c = make("entropic", target=0.5, kp=2.0, ki=0.5)
    assert alphas(c, [0.7, 0.6, 0.4]) == pytest.approx([0.4 + 0.1, 0.2 + 0.15, -0.2 + 0.1], rel=1e-12)


def test_positive_alpha_lowers_entropy_on_likely_tokens_only():
    c = make("entropic", target=0.5, kp=1.0, ki=0.0)
    alphas(c, [0.8])
    assert c.plan(TOKENS).weight.tolist() == pytest.approx([1.3, 0.7, 1, 1], rel=1e-12)


def test_tau_zero_acts_on_every_token():
    c = make("entropic", target=0.5, kp=1.0, ki=0.0, tau=0.0)
    alphas(c, [0.3])
    assert c.plan(TOKENS).weight.tolist() == pytest.approx([0.8, 1.2, 0.8, 1.2], rel=1e-12)


def test_tokens_of_zero_advantage_weigh_one():
    c = make("entropic", target=0.5, tau=0.0)
    alphas(c, [0.3])
    t = Tokens(**{**vars(TOKENS), "advantage": torch.zeros(4).double()})
    assert c.plan(t).weight.tolist() == [1, 1, 1, 1]


def test_alpha_is_clipped_and_may_be_free():
    assert alphas(make("entropic", target=0.0), [5.0, -7.0]) == [1.0, -1.0]
    assert alphas(make("entropic", target=0.0, ki=0.0, alpha_max=float("inf")), [5.0]) == [5.0]


def test_anti_windup_stops_the_sum():
    errors = [3.0] * 4 + [-0.5]
    wound = make("entropic", "released", target=0.0, kp=1.0, ki=0.1)
    assert alphas(wound, errors)[-1] == pytest.approx(-0.5 + 0.1 * 11.5)  # above zero with the error below
    stopped = make("entropic", target=0.0, kp=1.0, ki=0.1)
    assert alphas(stopped, errors)[-1] == pytest.approx(-0.5 + 0.1 * -0.5)


def test_the_sum_runs_on_while_it_leads_out_of_saturation():
    c = make("entropic", target=0.0, kp=0.0, ki=1.0, alpha_max=1.0)
    assert alphas(c, [0.9, 0.9, -0.2]) == pytest.approx([0.9, 0.9, 0.7])


def test_nan_moves_nothing():
    c = make("entropic", target=0.5)
    alphas(c, [0.8])
    before = c.state_dict()
    alphas(c, [float("nan")])
    assert c.state_dict() == before


def test_state_round_trip():
    c, d = make("entropic", target=0.5), make("entropic", target=0.5)
    alphas(c, [0.8, 0.1])
    d.load_state_dict(c.state_dict())
    assert alphas(c, [0.4]) == alphas(d, [0.4])


def test_bad_settings():
    with pytest.raises(ValueError, match=r"tau must lie in \[0, 1\)"):
        make("entropic", tau=1.0)
    with pytest.raises(ValueError, match="alpha_max must be positive"):
        make("entropic", alpha_max=0.0)
