from dataclasses import replace

import pytest
import torch
from helpers import sampled_tokens
from hypothesis import given, settings
from hypothesis import strategies as st
from thermostat_scene import Bandit, closed_loop, flow_of, mean_bonus_flow, observed

from entrostat import StepStats, Tokens, entropy_change, make
from entrostat.controllers.thermostat import ThermostatWarning, squared_step
from entrostat.numbers.plant import Plant

NAN = float("nan")
SEEDS = st.integers(0, 10**6)


def on_policy(tokens: Tokens) -> Tokens:
    return replace(tokens, old_logp=tokens.logp)


@pytest.mark.parametrize("mode", ["bonus", "reweight", "both"])
@pytest.mark.parametrize("spec", ["thermostat", "clip_higher+steer+thermostat", "entropy_bonus+kl_cov+thermostat"])
@settings(derandomize=True, deadline=None, max_examples=25)
@given(seed=SEEDS)
def test_predicted_change_is_the_measured_one_to_second_order(spec, mode, seed):
    bandit = Bandit(seed)
    controller = observed(0.8, spec, mode=mode, target=0.85)
    plan = controller.plan(bandit.tokens())
    predicted, gradient = float(plan.info["thermostat/flow"]), bandit.gradient(plan)
    errors = []
    for lr in (1e-2, 1e-3, 1e-4):
        measured = bandit.entropy(-lr * gradient) - bandit.entropy(torch.zeros(()))
        errors.append(abs(measured - lr * predicted) / lr)
    size = float(gradient.square().sum(-1).mean())
    assert errors[1] <= 1e-3 * max(size, 1.0)
    assert errors[2] <= 1e-4 * max(size, 1.0)


# Bonus ------------------------------------------------------------------------------------------------------------


def test_bonus_gives_the_wanted_flow_by_hand():
    """Before any plan came back: κ = 1 and one update a rollout step, so that the wanted flow is k·(target − Ĥ)."""
    t = sampled_tokens(3, 50)
    controller = observed(0.8, target=0.9, k=0.1)
    plan = controller.plan(t)
    torch.testing.assert_close(flow_of(plan, t), torch.full((3,), 0.01, dtype=torch.float64), rtol=1e-10, atol=0)
    base = flow_of(make("ppo").plan(t), t)
    coef = (0.01 - base) / mean_bonus_flow(t)
    torch.testing.assert_close(plan.info["thermostat/bonus"], coef, rtol=1e-10, atol=0)


def test_rate_limits_the_wanted_change():
    t = sampled_tokens(50)
    for target, flow in ((2.0, 0.03), (0.1, -0.03)):
        assert float(flow_of(observed(1.0, target=target, rate=0.03).plan(t), t)) == pytest.approx(flow, rel=1e-9)


def test_nothing_observed_means_no_change():
    t = sampled_tokens(50)
    assert abs(float(flow_of(make("thermostat", target=3.0).plan(t), t))) < 1e-15


def test_one_sided_bonus_is_never_negative():
    t = sampled_tokens(50)
    settings = {"target": 0.2, "rate": 0.5, "k": 1.0}
    assert float(observed(1.0, **settings).plan(t).info["thermostat/bonus"]) < 0
    plan = observed(1.0, one_sided=True, **settings).plan(t)
    assert plan.entropy_coef.tolist() == [0.0]
    assert float(plan.info["thermostat/flow"]) == float(plan.info["thermostat/base_flow"])


def test_bonus_is_bounded_and_the_flow_says_what_is_left():
    t = sampled_tokens(50)
    plan = observed(0.1, target=5.0, rate=1.0, k=1.0, bonus_max=0.25).plan(t)
    assert plan.entropy_coef.tolist() == [0.25]
    expected = float(plan.info["thermostat/base_flow"]) + 0.25 * float(mean_bonus_flow(t))
    assert float(plan.info["thermostat/flow"]) == pytest.approx(expected, rel=1e-12)


def test_a_deterministic_policy_has_no_bonus():
    zero = torch.zeros(4, dtype=torch.float64)
    t = Tokens(logp=zero, old_logp=zero, advantage=zero + 1, entropy=zero, s2=zero + 1, s2l=zero, s2ll=zero)
    plan = observed(0.0, target=0.5).plan(t)
    assert plan.entropy_coef.tolist() == [0.0]


@settings(derandomize=True, deadline=None, max_examples=50)
@given(seed=SEEDS, target=st.floats(0.1, 1.9), size=st.floats(1e-3, 10))
def test_no_other_update_with_the_wanted_flow_is_nearer(seed, target, size):
    """Among updates Δz with the wanted first-order ΔH, the bonus is nearest to the one without it."""
    bandit = Bandit(seed)
    t = bandit.tokens()
    bare = -bandit.gradient(make("ppo").plan(t))
    ours = -bandit.gradient(observed(1.0, target=target, bonus_max=1e6).plan(t))
    normal = -bandit.gradient(replace(make("entropy_bonus", coef=1.0).plan(t), advantage=torch.zeros(30).double()))
    generator = torch.Generator().manual_seed(seed + 1)
    other = ours + size * torch.randn(ours.shape, generator=generator, dtype=torch.float64)
    other = other + normal * ((ours - other) * normal).sum() / normal.square().sum()  # back to the wanted flow
    assert float((other * normal).sum()) == pytest.approx(float((ours * normal).sum()), rel=1e-8, abs=1e-8)
    assert (other - bare).norm() >= (ours - bare).norm() * (1 - 1e-12)


# Reweight ---------------------------------------------------------------------------------------------------------


def test_opefo_is_the_special_case_of_no_wanted_change_at_the_price_of_flow():
    t = on_policy(sampled_tokens(5, 200))
    ours = make("reinforce+thermostat", mode="reweight", price="flow").plan(t)
    theirs = make("reinforce+opefo", estimator="exact").plan(t)
    moving = entropy_change.exact(t.logp, t.entropy, t.s2, t.s2l, t.advantage) != 0
    torch.testing.assert_close(ours.weight[moving], theirs.weight[moving], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(ours.info["thermostat/level"], theirs.info["opefo/lambda"], rtol=1e-10, atol=1e-12)


def test_weights_leave_other_terms_alone_but_count_their_flow():
    t = sampled_tokens(80)
    plan = observed(0.8, "entropy_bonus+kl_cov+thermostat", mode="reweight", target=0.85, coef=0.1).plan(t)
    assert float(flow_of(plan, t)) == pytest.approx(0.005, rel=1e-9)
    assert float(plan.info["thermostat/flow"]) == pytest.approx(0.005, rel=1e-9)


def test_without_advantages_weights_do_nothing():
    t = replace(sampled_tokens(50), advantage=torch.zeros(50).double())
    plan = observed(0.8, mode="reweight", target=1.5).plan(t)
    assert plan.weight.tolist() == [1.0] * 50
    assert float(plan.info["thermostat/flow"]) == 0.0


# Both -------------------------------------------------------------------------------------------------------------


def test_both_move_by_one_level_by_hand():
    """m = 1 + ν·φ/(w²·‖e − p‖²) and μ = bonus_share·ν give the wanted flow of .005 together."""
    t = sampled_tokens(2, 60, seed=4)
    plan = observed(0.8, mode="both", target=0.85, bonus_share=0.3).plan(t)
    level = plan.info["thermostat/level"].unsqueeze(-1)
    torch.testing.assert_close(plan.entropy_coef, 0.3 * level, rtol=1e-12, atol=0)
    base = make("ppo").plan(t)
    dlogp = 60 * base.coefficients(t.logp)[0]  # plan() has scaled by 1/60
    flow = entropy_change.exact(t.logp, t.entropy, t.s2, t.s2l, -dlogp)
    price = dlogp**2 * (1 - 2 * t.logp.exp() + t.s2)
    weight = torch.where(price > 0, 1 + level * flow / price.clamp(min=1e-300), 1.0).clamp(0, 2)
    torch.testing.assert_close(plan.weight, weight, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(flow_of(plan, t), torch.full((2,), 0.005, dtype=torch.float64), rtol=1e-9, atol=0)


def test_both_reach_where_weights_have_nothing_to_multiply():
    t = replace(sampled_tokens(50), advantage=torch.zeros(50).double())
    plan = observed(0.8, mode="both", target=0.9).plan(t)
    assert plan.weight.tolist() == [1.0] * 50
    assert float(flow_of(plan, t)) == pytest.approx(0.01, rel=1e-9)
    assert float(plan.entropy_coef) == pytest.approx(0.01 / float(mean_bonus_flow(t)), rel=1e-9)


def test_both_with_a_bounded_or_one_sided_bonus_say_what_is_left():
    t = sampled_tokens(50)
    bounded = observed(0.1, mode="both", target=5.0, rate=9.0, k=1.9, bonus_max=0.25).plan(t)
    assert bounded.entropy_coef.tolist() == [0.25]
    falling = observed(1.0, mode="both", one_sided=True, target=0.2, rate=0.5, k=1.0).plan(t)
    assert falling.entropy_coef.tolist() == [0.0]
    for plan in (bounded, falling):
        assert float(flow_of(plan, t)) == pytest.approx(float(plan.info["thermostat/flow"]), rel=1e-9)


def test_a_one_sided_bonus_rises_with_the_weights():
    """Wanted is .001 more than the flow there is: the bonus is what it would be if it could fall as well."""
    t = sampled_tokens(50, seed=2)
    base = float(observed(0.8, mode="both", target=0.8).plan(t).info["thermostat/base_flow"])
    assert base > 1e-3
    given = {"mode": "both", "target": 0.8 + base + 1e-3, "k": 1.0, "rate": torch.inf}
    both, rising = (observed(0.8, **given, one_sided=x).plan(t) for x in (False, True))
    assert float(rising.entropy_coef) == float(both.entropy_coef) > 0
    assert torch.equal(rising.weight, both.weight)


def test_a_token_that_is_certain_has_a_small_but_positive_step():
    logp = torch.tensor([-1e-12, -0.1], dtype=torch.float64)
    p = logp.exp()
    found = squared_step(logp, p**2 + (1 - p) ** 2)
    assert found.tolist() == pytest.approx([1e-24, 2 * (1 - float(p[1])) ** 2], rel=0.5)


def test_the_step_of_a_nearly_certain_token_is_not_what_float32_leaves_of_it():
    rest = torch.logspace(-7, -1, 200, dtype=torch.float64)
    s2 = (1 - rest) ** 2 + 0.6 * rest**2
    exact, rounded = squared_step((-rest).log1p(), s2), squared_step((-rest).log1p().float(), s2.float())
    torch.testing.assert_close(exact, 1.6 * rest**2, rtol=0.3, atol=0)
    assert (rounded / exact).amin() > 0.6
    assert (rounded / exact).amax() < 1.3


# The loop ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gain", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("updates", [1, 8])
def test_kappa_is_found_and_the_target_reached_without_error(gain, updates):
    controller = make("thermostat", target=0.6)
    entropies = closed_loop(controller, gain, 300, drift=-0.003, updates=updates)
    assert entropies[-1] == pytest.approx(0.6, abs=1e-4)
    plant = controller.parts[0].plant
    assert 0.5 < float(plant.gain) / gain < 2  # once the entropy rests nothing tells more of it
    assert float(plant.drift / plant.gain) == pytest.approx(-0.003 / gain, rel=0.05)


def test_a_plan_never_points_away_from_a_far_target():
    """A drift towards it is welcome; near it, where k·error is below the rate, the drift is held."""
    controller = make("thermostat", target=0.6, delay=0)
    part = controller.parts[0]
    for entropy, drift, away in ((1.6, -0.1, True), (0.1, 0.1, True), (1.6, 0.1, False), (0.65, -0.1, False)):
        controller.observe(StepStats(entropy=entropy))
        plants = part.plant.plants
        part.plant = part.plant._replace(plants=plants._replace(drift=torch.full_like(plants.drift, drift)))
        wanted = float(part.wanted_flow()) * float(part.plant.gain)
        change = min(max(0.1 * (0.6 - entropy), -0.02), 0.02) - drift
        part.plant = part.plant._replace(plants=plants._replace(entropy=torch.full_like(plants.entropy, torch.nan)))
        assert wanted == pytest.approx(0.0 if away else change, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("told", [None, 8])
def test_old_readings_do_not_make_it_swing(told):
    """It holds a plant whose entropies reach it 8 rollouts late; one that takes them for new does not."""
    for delay, near in ((-1, True), (8, True), (0, False)):
        controller = make("thermostat", target=0.6, delay=delay)
        entropies = closed_loop(controller, 0.5, 300, drift=-0.003, late=8, told=told)
        assert (max(abs(h - 0.6) for h in entropies[-100:]) < 0.01) == near


def test_runs_may_have_delays_of_their_own():
    together = make("thermostat", target=0.6, delay=torch.tensor([-1.0, 3.0]))
    for h in (1.0, 0.9, 0.8):
        together.observe(StepStats(entropy=torch.tensor([h, h]), delay=2))
    assert together.metrics()["thermostat/delay"].tolist() == [2, 3]


@pytest.mark.parametrize("delay", [2.5, -1, True + 0.5, "8"])
def test_a_delay_that_is_no_count_is_told(delay):
    with pytest.raises(ValueError, match=r"^StepStats\.delay must be a whole number, 0 or more"):
        make("thermostat", target=0.6).observe(StepStats(entropy=1.0, delay=delay))
    with pytest.raises(ValueError, match=r"^thermostat: delay must be a (whole )?number"):
        make("thermostat", delay=delay if delay != -1 else 0.5)


def test_the_state_of_a_version_that_knew_no_delays_is_restored():
    new = make("thermostat", target=0.6)
    closed_loop(new, 0.4, 20, drift=-0.01, told=0)
    state = new.state_dict()["thermostat"]
    old = {name: state[name][0] for name in Plant._fields if name != "evidence"} | {"updates": state["updates"]}
    again = make("thermostat", target=0.6)
    again.parts[0].load_state_dict(old)
    for name in ("gain", "drift", "entropy"):
        assert float(getattr(again.parts[0].plant, name)) == float(getattr(new.parts[0].plant, name))


def poisoned(gain: float, drift: float):
    """A loop at its target whose estimate is then wrong, and certain."""
    controller = make("thermostat", target=0.6, bonus_max=1.0)
    closed_loop(controller, 0.5, 60, drift=-0.003, reach=0.1)
    part, plants = controller.parts[0], controller.parts[0].plant.plants
    wrong = {"gain": torch.full_like(plants.gain, gain), "drift": torch.full_like(plants.drift, drift)}
    part.plant = part.plant._replace(plants=plants._replace(covariance=1e-9 * plants.covariance, **wrong))
    return controller


@pytest.mark.filterwarnings("ignore::entrostat.controllers.thermostat.ThermostatWarning")
@pytest.mark.parametrize("gain", [1e-6, 0.5, 10.0])
@pytest.mark.parametrize("drift", [-0.5, 0.5])
def test_it_comes_back_from_any_wrong_estimate(gain, drift):
    entropies = closed_loop(poisoned(gain, drift), 0.5, 150, drift=-0.003, reach=0.1, start=0.6)
    assert max(abs(h - 0.6) for h in entropies) < 2
    assert entropies[-1] == pytest.approx(0.6, abs=0.02)


def test_it_says_that_it_went_astray():
    controller = poisoned(0.5, 0.5)
    with pytest.warns(ThermostatWarning, match="for 10 rollouts its plans did not lead to the target"):
        closed_loop(controller, 0.5, 60, drift=-0.003, reach=0.1, start=0.6)
    assert float(controller.metrics()["thermostat/alarms"]) == 1


def test_first_step_is_right_when_the_prior_is():
    entropies = closed_loop(make("thermostat", target=0.6, rate=0.02), 1.0, 1)
    assert entropies == pytest.approx([0.98], rel=1e-12)


def test_wanted_flow_is_divided_over_the_updates():
    controller = make("thermostat", target=0.6)
    controller.observe(StepStats(entropy=1.0))
    assert float(controller.parts[0].wanted_flow()) == pytest.approx(-0.02, rel=1e-12)
    controller.observe(StepStats(entropy=1.0, planned={"thermostat/flow": 0.0, "thermostat/updates": 8.0}))
    part = controller.parts[0]
    whole = (-0.02 - float(part.plant.drift)) / float(part.plant.gain)
    assert float(part.wanted_flow()) == pytest.approx(whole / 8, rel=1e-12)


def test_nan_moves_nothing():
    controller = observed(1.0, target=0.6)
    controller.observe(StepStats(entropy=0.98, planned={"thermostat/flow": -0.02, "thermostat/updates": 2.0}))
    before = controller.state_dict()["thermostat"]
    controller.observe(StepStats(entropy=NAN, planned={"thermostat/flow": -0.02, "thermostat/updates": 5.0}))
    after = controller.state_dict()["thermostat"]
    assert all(torch.equal(before[key], after[key]) for key in before)


def test_runs_side_by_side_are_runs_alone():
    """One of three has no entropy in the second step."""
    entropies = torch.tensor([[1.0, 0.9, 0.7], [0.98, NAN, 0.69], [0.95, 0.88, 0.7]], dtype=torch.float64)
    flows = torch.tensor([[0.0, 0.0, 0.0], [-0.02, -0.02, 0.01], [-0.03, -0.01, 0.02]], dtype=torch.float64)
    together = make("thermostat", target=torch.tensor([0.6, 0.5, 0.8]))
    for h, flow in zip(entropies, flows, strict=True):
        together.observe(StepStats(entropy=h, planned={"thermostat/flow": flow, "thermostat/updates": 1.0}))
    for i, target in enumerate((0.6, 0.5, 0.8)):
        alone = make("thermostat", target=target)
        for h, flow in zip(entropies[:, i], flows[:, i], strict=True):
            alone.observe(StepStats(entropy=h, planned={"thermostat/flow": flow, "thermostat/updates": 1.0}))
        wanted = together.parts[0].wanted_flow()[i]
        torch.testing.assert_close(alone.parts[0].wanted_flow(), wanted, rtol=1e-6, atol=0)


@pytest.mark.parametrize("mode", ["bonus", "reweight", "both"])
def test_plans_of_runs_side_by_side_are_those_of_runs_alone(mode):
    """Each run has settings of its own; the second cannot have what it wants."""
    t = sampled_tokens(3, 40)
    own = {
        "target": [0.875, 9.0, 0.625],
        "rate": [0.03125, torch.inf, 0.125],
        "k": [0.5, 1.75, 0.25],
        "bonus_max": [1.0, 0.25, 0.5],
        "m_max": [1.125, 1.5, 3.0],
        "bonus_share": [0.125, 0.5, 0.25],
    }
    together = observed(0.8, mode=mode, **{name: torch.tensor(values).double() for name, values in own.items()}).plan(t)
    for i in range(3):
        one = Tokens(**{name: x if x is None or x.ndim == 1 else x[i] for name, x in vars(t).items()})
        alone = observed(0.8, mode=mode, **{name: values[i] for name, values in own.items()}).plan(one)
        torch.testing.assert_close(together.weight.expand(3, 40)[i], alone.weight.expand(40), rtol=1e-6, atol=1e-9)
        if mode != "reweight":
            torch.testing.assert_close(together.entropy_coef[i], alone.entropy_coef, rtol=1e-6, atol=1e-9)
        for name, value in alone.info.items():
            torch.testing.assert_close(together.info[name].expand(3)[i], value, rtol=1e-6, atol=1e-9)
        assert float(alone.info["thermostat/updates"]) == 1


def test_metrics_by_hand():
    """The error is entropy minus target; k removes a tenth of it, by one update for a κ of 2."""
    controller = observed(0.8, target=0.7, kappa=2.0)
    found = {name: float(value) for name, value in controller.metrics().items()}
    assert found == pytest.approx(
        {
            "thermostat/kappa": 2,
            "thermostat/drift": 0,
            "thermostat/delay": 0,
            "thermostat/astray": 0,
            "thermostat/alarms": 0,
            "thermostat/error": 0.1,
            "thermostat/wanted_flow": -0.005,
        }
    )


def test_state_round_trip_is_exact():
    first, second = make("thermostat", target=0.6), make("thermostat", target=0.6)
    closed_loop(first, 0.4, 20, drift=-0.01)
    second.load_state_dict(first.state_dict())
    for controller in (first, second):
        controller.observe(StepStats(entropy=0.7, planned={"thermostat/flow": -0.02, "thermostat/updates": 2.0}))
    a, b = (c.state_dict()["thermostat"] for c in (first, second))
    assert all(torch.equal(a[key], b[key]) for key in a)


def test_it_comes_last_in_a_chain():
    assert make("thermostat+steer").name == make("steer+thermostat").name == "ppo+steer+thermostat"


WRONG = {
    r"'thermostat' needs Tokens\.s2ll": lambda: make("thermostat").plan(replace(sampled_tokens(10), s2ll=None)),
    "thermostat: state has": lambda: make("thermostat").parts[0].load_state_dict({"updates": torch.tensor(1.0)}),
    "mode must be one of bonus, reweight, both": lambda: make("thermostat", mode="none"),
    "bonus_share must be positive": lambda: make("thermostat", bonus_share=0.0),
    "price must be one of gradient, flow": lambda: make("thermostat", price="none"),
    "rate must be positive": lambda: make("thermostat", rate=0.0),
    "kappa must be positive": lambda: make("thermostat", kappa=-1.0),
    r"k must lie in \(0, 2\)": lambda: make("thermostat", k=2.0),
    r"forgetting must lie in \(0, 1\]": lambda: make("thermostat", forgetting=1.5),
    "m_max must be above 1": lambda: make("thermostat", m_max=1.0),
    "integral must not be negative": lambda: make("thermostat", integral=-0.1),
}


@pytest.mark.parametrize(("message", "wrong"), WRONG.items())
def test_what_is_wrong_is_named(message, wrong):
    with pytest.raises(ValueError, match=message):
        wrong()
