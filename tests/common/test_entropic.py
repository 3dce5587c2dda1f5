import pytest
import torch

from entrostat import StepStats, Tokens, make
from entrostat.numbers import pi_control

LOGP = torch.tensor([0.99, 0.99, 0.5, 0.5], dtype=torch.float64).log()
TOKENS = Tokens(logp=LOGP, old_logp=LOGP, advantage=torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64))


ABOVE = 12.0
"""Target under which errors of either sign are entropies."""


def alphas(controller, entropies, target: float = 0.0) -> list[float]:
    """α after each of these entropies, or errors beside a target."""
    seen = []
    for entropy in entropies:
        controller.observe(StepStats(entropy=target + entropy))
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
    assert alphas(make("entropic", target=ABOVE), [5.0, -7.0], ABOVE) == [1.0, -1.0]
    assert alphas(make("entropic", target=0.0, ki=0.0, alpha_max=float("inf")), [5.0]) == [5.0]


@pytest.mark.parametrize("scale", [1.0, -1.0, 0.1])
def test_anti_windup_stops_the_sum(scale):
    errors, limit = [3.0 * scale] * 4 + [-0.5 * scale], abs(scale)
    wound = make("entropic", "released", target=ABOVE, kp=1.0, ki=0.1, alpha_max=limit)
    assert alphas(wound, errors, ABOVE)[-1] == pytest.approx(scale * (-0.5 + 0.1 * 11.5))  # other side
    stopped = make("entropic", target=ABOVE, kp=1.0, ki=0.1, alpha_max=limit)
    assert alphas(stopped, errors, ABOVE)[-1] == pytest.approx(scale * (-0.5 + 0.1 * -0.5))


def test_the_sum_counts_what_just_reaches_the_bound():
    assert alphas(make("entropic", target=0.0, kp=0.5, ki=0.5, alpha_max=1.0), [1.0]) == [1.0]


def test_weights_are_one_until_an_entropy_was_seen():
    assert make("entropic", tau=0.0).plan(TOKENS).weight.tolist() == [1, 1, 1, 1]


def test_gains_are_logged_where_they_are_found():
    fixed = {"entropic/integral", "entropic/alpha"}
    assert set(make("entropic").metrics()) == fixed
    assert set(make("entropic", auto=True).metrics()) == fixed | {f"entropic/{x}" for x in ("plant_gain", "kp", "ki")}


def test_the_sum_runs_on_while_it_leads_out_of_saturation():
    c = make("entropic", target=ABOVE, kp=0.0, ki=1.0, alpha_max=1.0)
    assert alphas(c, [0.9, 0.9, -0.2], ABOVE) == pytest.approx([0.9, 0.9, 0.7])


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


def test_derivative_by_hand():
    """e = .2, .5, .4: kd = 2 adds 0, .6, −.2."""
    c = make("entropic", target=0.5, kp=1.0, ki=0.0, kd=2.0, alpha_max=10.0)
    assert alphas(c, [0.7, 1.0, 0.9]) == pytest.approx([0.2, 0.5 + 0.6, 0.4 - 0.2], rel=1e-12)


def test_filter_by_hand():
    """Ĥ = .7, .9, .5 with weight ½ on the past: .7, .8, .65."""
    c = make("entropic", target=0.5, kp=1.0, ki=0.0, ema=0.5)
    assert alphas(c, [0.7, 0.9, 0.5]) == pytest.approx([0.2, 0.3, 0.15], rel=1e-12)


def test_nan_moves_neither_filter_nor_derivative():
    c, d = (make("entropic", target=0.5, kd=1.0, ema=0.5, auto=True) for _ in range(2))
    alphas(c, [0.7, float("nan"), 0.9])
    alphas(d, [0.7, 0.9])
    first, second = (x.state_dict()["entropic"] for x in (c, d))
    assert all(torch.equal(first[key], second[key]) for key in first)


def linear_plant(controller, g: float, drift: float, steps: int, start: float = 0.9) -> list[float]:
    entropy, seen = start, []
    for _ in range(steps):
        controller.observe(StepStats(entropy=entropy))
        entropy = max(entropy + drift - g * float(controller.parts[0].alpha), 0.0)
        seen.append(entropy)
    return seen


@pytest.mark.parametrize("g", [0.01, 0.1, 1.0])
def test_auto_finds_the_plant_and_holds_the_target(g):
    c = make("entropic", target=0.6, auto=True)
    entropies = linear_plant(c, g, drift=-0.3 * g, steps=400)
    assert entropies[-1] == pytest.approx(0.6, abs=1e-3)
    assert max(abs(h - 0.6) for h in entropies[-100:]) < 5e-3
    gains = c.metrics()
    assert 1 / 3 < float(gains["entropic/plant_gain"]) / g < 2  # once the entropy rests nothing tells more of it
    assert bool(pi_control.stable(g, gains["entropic/kp"], gains["entropic/ki"]))


def test_retuning_does_not_move_what_the_sum_gives():
    c = make("entropic", target=0.6, auto=True)
    linear_plant(c, 0.05, drift=-0.01, steps=60)
    part = c.parts[0]
    before = float(part.integral * pi_control.place_poles(part.plant.gain).ki)
    error = 0.601 - 0.6
    c.observe(StepStats(entropy=0.601))
    ki = pi_control.place_poles(part.plant.gain).ki
    assert float(part.integral * ki) == pytest.approx(before + float(ki) * error, rel=1e-9)


def test_auto_acts_on_tokens_above_the_least_top_probability_at_the_target():
    """A distribution with entropy H has a probability of e^(−H) at least: e^(−.7) = .497 < .5."""
    c = make("entropic", target=0.7, auto=True)
    alphas(c, [0.75])
    alpha = float(c.parts[0].alpha)
    weights = [1 + alpha, 1 - alpha, 1 + alpha, 1 - alpha]
    assert c.plan(TOKENS).weight.tolist() == pytest.approx(weights, rel=1e-12)
    likely_only = make("entropic", target=0.6, auto=True)  # e^(−.6) = .549 > .5
    alphas(likely_only, [0.75])
    assert likely_only.plan(TOKENS).weight.tolist()[2:] == [1, 1]


def test_auto_state_round_trip():
    c, d = make("entropic", target=0.5, auto=True), make("entropic", target=0.5, auto=True)
    alphas(c, [0.8, 0.7, 0.65])
    d.load_state_dict(c.state_dict())
    assert alphas(c, [0.6, 0.55]) == alphas(d, [0.6, 0.55])
    with pytest.raises(ValueError, match="entropic: state has"):
        make("entropic").load_state_dict(c.state_dict())


def test_runs_side_by_side_tune_themselves_alone():
    together = make("entropic", target=torch.tensor([0.5, 0.7]), auto=True)
    readings = torch.tensor([[0.9, 0.8], [0.85, 0.78], [0.83, 0.74]], dtype=torch.float64)
    for reading in readings:
        together.observe(StepStats(entropy=reading))
    for i, target in enumerate((0.5, 0.7)):
        alone = make("entropic", target=target, auto=True)
        for reading in readings[:, i]:
            alone.observe(StepStats(entropy=reading))
        assert float(alone.parts[0].alpha) == pytest.approx(float(together.parts[0].alpha[i]), rel=1e-6)


def test_the_derivative_can_saturate_alpha():
    """e = 0, then −.1: α would be −.1 − .2 + kd·(−.1) = −2.3 with kd = 20, and the sum stops at once."""
    c = make("entropic", target=0.5, kp=1.0, ki=2.0, kd=20.0, alpha_max=1.0)
    assert alphas(c, [0.5, 0.4]) == pytest.approx([0.0, -1.0])
    assert float(c.parts[0].integral) == 0.0


def test_auto_follows_a_plant_that_changes():
    """Its gain falls to a fifth at step 150 and the drift turns, under noise of .02 nats."""
    c, g = make("entropic", target=0.6, auto=True), torch.Generator().manual_seed(0)
    entropy, alpha, noise = 0.6, 0.0, 0.02 * torch.randn(600, generator=g, dtype=torch.float64)
    for step in range(600):
        gain, drift = (0.5, 0.05) if step < 150 else (0.1, -0.02)
        entropy = entropy + drift - gain * alpha
        c.observe(StepStats(entropy=entropy + float(noise[step])))
        alpha = float(c.parts[0].alpha)
        assert step not in (149, 599) or abs(entropy - 0.6) < 0.05
