import pytest
import torch

from entrostat import StepStats, Tokens, make

H = torch.tensor([0.5, 1.5], dtype=torch.float64)
LOGP = torch.zeros(2, dtype=torch.float64)


def tokens() -> Tokens:
    return Tokens(logp=LOGP, old_logp=LOGP, advantage=torch.zeros_like(LOGP), entropy=H)


def test_entropy_bonus_is_minus_c_times_mean_entropy():
    plan = make("entropy_bonus", coef=0.3).plan(tokens())
    assert plan.loss(LOGP, H).item() == pytest.approx(-0.3 * 1.0, rel=1e-15)
    assert plan.coefficients(LOGP, H)[1].tolist() == pytest.approx([-0.15, -0.15], rel=1e-15)


def test_bonuses_add_in_a_chain():
    chain = make("entropy_bonus+adaptive_entropy", coef=0.3, initial=0.2, delta=0.0, target=9.0, coef_max=1.0)
    chain.observe(StepStats(entropy=1.0))
    assert chain.plan(tokens()).loss(LOGP, H).item() == pytest.approx(-0.5, rel=1e-15)


def test_entropy_must_be_given():
    with pytest.raises(ValueError, match="pass entropy to loss"):
        make("entropy_bonus").plan(tokens()).loss(LOGP)
    with pytest.raises(ValueError, match=r"'entropy_bonus' needs Tokens\.entropy"):
        make("entropy_bonus").plan(Tokens(logp=LOGP, old_logp=LOGP, advantage=LOGP))


def test_adaptive_entropy_sequence():
    c = make("adaptive_entropy", target=0.5, delta=0.25, coef_max=0.5)
    seen = []
    for entropy in (0.4, 0.4, 0.4, 0.6, 0.6, 0.6, 0.4):
        c.observe(StepStats(entropy=entropy))
        bonus = -c.plan(tokens()).loss(LOGP, H).item()
        seen.append((float(c.parts[0].coef), bonus))
    assert seen == [(0.25, 0.25), (0.5, 0.5), (0.5, 0.5), (0.25, 0), (0, 0), (0, 0), (0.25, 0.25)]


def test_enabled_is_separate_from_the_coefficient():
    c = make("adaptive_entropy", target=0.5, delta=0.1, initial=0.3, coef_max=1.0)
    c.observe(StepStats(entropy=0.9))
    assert float(c.parts[0].coef) == pytest.approx(0.2)
    assert not c.parts[0].enabled
    assert c.plan(tokens()).loss(LOGP, H).item() == 0


def test_nan_moves_nothing():
    c = make("adaptive_entropy", target=0.5, delta=0.1, initial=0.3, coef_max=1.0)
    c.observe(StepStats(entropy=0.1))
    before = c.state_dict()
    c.observe(StepStats(entropy=float("nan")))
    assert c.state_dict() == before


def test_runs_move_apart():
    c = make("adaptive_entropy", target=torch.tensor([0.2, 0.8]), delta=0.1, coef_max=1.0)
    c.observe(StepStats(entropy=torch.tensor([0.5, 0.5])))
    assert c.parts[0].coef.tolist() == [0.0, 0.1]
    runs = Tokens(**{k: None if v is None else v.expand(2, 2) for k, v in vars(tokens()).items()})
    assert c.plan(runs).loss(LOGP.expand(2, 2), H.expand(2, 2)).tolist() == pytest.approx([0, -0.1])


def test_bounds_must_fit():
    with pytest.raises(ValueError, match="coef_min must not exceed coef_max"):
        make("adaptive_entropy", coef_min=1.0)
    for initial in (0.1, 0.4):
        with pytest.raises(ValueError, match="initial must lie between coef_min and coef_max"):
            make("adaptive_entropy", coef_min=0.2, coef_max=0.3, initial=initial)
    assert make("adaptive_entropy", coef_min=0.25, coef_max=0.25, initial=0.25).parts[0].coef == 0.25


def test_no_bonus_at_the_target_and_before_an_entropy_was_seen():
    c = make("adaptive_entropy", target=0.5, initial=0.25, coef_max=0.5)
    assert c.plan(tokens()).entropy_coef == 0
    c.observe(StepStats(entropy=0.5))
    assert c.plan(tokens()).entropy_coef == 0


def test_trl_follows_the_entropy_of_the_step_before():
    """By hand, after TRL's loop: the coefficient and the switch of a step come from the entropy of the one before."""
    c = make("adaptive_entropy_trl", target=0.5, delta=0.25, initial=0.25)
    seen = []
    for entropy in (0.4, 0.4, 0.6, float("nan"), 0.4, 0.4):
        c.observe(StepStats(entropy=entropy))
        seen.append((float(c.parts[0].coef), -c.plan(tokens()).loss(LOGP, H).item()))
    assert seen == [(0.25, 0), (0.5, 0.5), (0.75, 0.75), (0.75, 0.75), (0.5, 0), (0.75, 0.75)]


def test_a_bonus_on_kept_tokens_is_the_mean_over_them():
    """Two of four tokens have the largest entropy: −.1·(3 + 4)/2, whatever the policy term divides by."""
    entropy = torch.tensor([1.0, 3.0, 2.0, 4.0], dtype=torch.float64)
    logp = torch.full_like(entropy, -1.0)
    tokens = Tokens(logp=logp, old_logp=logp, advantage=torch.zeros_like(entropy), entropy=entropy)
    settings = {"share": 0.5, "coef": 0.1}
    plan = make("forking_tokens+entropy_bonus", tokens="kept", **settings).plan(tokens)
    assert plan.loss(logp, entropy).item() == pytest.approx(-0.1 * 3.5, rel=1e-12)
    assert plan.coefficients(logp, entropy)[1].tolist() == pytest.approx([0, -0.05, 0, -0.05], rel=1e-12)
    every = make("forking_tokens+entropy_bonus", **settings).plan(tokens)
    assert every.loss(logp, entropy).item() == pytest.approx(-0.1 * 2.5, rel=1e-12)
    with pytest.raises(ValueError, match="averages over the kept tokens itself"):
        make("ppo+forking_tokens+entropy_bonus", denominator="kept", tokens="kept")
