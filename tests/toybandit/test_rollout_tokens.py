"""The tokens of an update: those that the simulator trains on, with what the plan makes of them."""

import numpy as np
import pytest
import torch

from toybandit import Config, simulate
from toybandit.rollout_tokens import RolloutTokens, by_quadrant, described, planned_by, watch

SMALL = {"states": 8, "rollouts": 12, "passes": 3, "lr": 1.0}


def tokens_of(*which, **when) -> RolloutTokens:
    update = watch(*which, **when)
    return described(update.tokens, update.plan)


def test_their_entropy_change_is_what_the_simulator_predicts():
    config = Config(controller="clip_higher+steer+entropy_bonus", **SMALL)
    predicted = simulate(config, (4,), predict=True).predicted
    for rollout in (0, 7):
        updates = [tokens_of(config, 4, rollout=rollout, number=number) for number in range(3)]
        # per unit of learning rate, which is 1 here; the mean over tokens is that over states
        assert sum(update.planned.mean() for update in updates) == pytest.approx(predicted[0, rollout], rel=1e-12)


def test_the_state_of_a_closed_loop_is_that_of_the_run():
    config = Config(controller="entropic", target=0.6, controller_args={"tau": 0.0, "ki": 0.5}, **SMALL)
    alpha = simulate(config, (1,)).metrics["entropic/alpha"][0]
    tokens = tokens_of(config, 1, rollout=5)
    assert np.unique(tokens.weight.round(12)) == pytest.approx(sorted([1 - alpha[5], 1 + alpha[5]]), abs=1e-12)
    assert abs(alpha[5]) > 0.01


def test_first_and_last_update_of_a_rollout():
    first, last = (tokens_of(Config(**SMALL), rollout=3, number=number) for number in (0, -1))
    assert (first.ratio == 1).all()
    assert first.kept.all()
    assert np.ptp(last.ratio) > 0.1
    assert not last.kept.all()
    stopped = ~last.kept
    assert (np.abs(last.ratio[stopped] - 1) > 0.2).all()
    assert (last.planned[stopped] == 0).all()
    np.testing.assert_allclose(last.planned[last.kept], last.flow[last.kept], rtol=1e-12)
    assert (first.advantage == last.advantage).all()
    assert (tokens_of(Config(**SMALL), rollout=3, number=-3).p == first.p).all()


def test_quadrants_by_hand():
    tokens = tokens_of(Config(**SMALL), rollout=2, number=0)
    likely = tokens.p > np.exp(-tokens.entropy)
    assert (tokens.likely == likely).all()
    assert (tokens.beyond <= tokens.likely).all()
    names = tokens.quadrant()
    assert set(names) <= {"I", "II", "III", "IV", ""}
    assert (names[(tokens.advantage > 0) & likely] == "I").all()
    assert (names[(tokens.advantage < 0) & likely] == "IV").all()
    assert (names[(tokens.advantage < 0) & ~likely] == "III").all()
    assert ((names == "") == (tokens.advantage == 0)).all()
    lowers = np.isin(tokens.quadrant(exact=True), ("I", "III"))
    acting = tokens.advantage != 0
    assert ((tokens.flow < 0) == lowers)[acting].all()


@pytest.mark.parametrize("exact", [False, True])
def test_sums_over_quadrants(exact):
    tokens = tokens_of(Config(controller="positive_only+steer", **SMALL), rollout=2)
    found = by_quadrant(tokens, exact=exact)
    assert sum(q.tokens for q in found.values()) == (tokens.advantage != 0).sum()
    assert sum(q.change for q in found.values()) == pytest.approx(tokens.planned.mean(), rel=1e-12)
    assert found["III"][1:] == (0.0, 0.0, 0.0)
    second = tokens.quadrant(exact=exact) == "II"
    assert found["II"].weight == pytest.approx(tokens.weight[second].mean())
    assert found["II"].kept == pytest.approx(np.mean(np.abs(tokens.planned[second]) > 0))
    nobody = tokens_of(Config(states=1, group=2, rollouts=1, reward_right=1.0, reward_wrong=1.0))
    assert np.isnan(by_quadrant(nobody)["I"].weight)


def test_other_controllers_on_the_same_tokens():
    update = watch(Config(**SMALL), rollout=3)
    plain = described(update.tokens, update.plan)
    higher, free, positive = (
        described(update.tokens, planned_by(Config(controller=name), update))
        for name in ("clip_higher", "clip_free", "positive_only")
    )
    assert plain.kept.sum() < higher.kept.sum() < free.kept.sum() == plain.kept.size
    assert (higher.flow == plain.flow).all()
    assert ((positive.weight == 0) == (plain.advantage < 0)).all()
    own = described(update.tokens, planned_by(Config(), update))
    assert (own.weight == plain.weight).all()
    assert (own.kept == plain.kept).all()


def test_the_weight_is_what_the_advantage_of_the_rollout_was_multiplied_by():
    """Also where a controller adds to it."""
    update = watch(Config(env="det", **SMALL), rollout=11)
    plan = planned_by(Config(controller="entropy_advantage+steer"), update)
    found = described(update.tokens, plan)
    acting = found.advantage != 0
    assert 0 < acting.sum() < acting.size
    shaped = (plan.weight * plan.advantage)[0].numpy()
    np.testing.assert_allclose((found.weight * found.advantage)[acting], shaped[acting], rtol=1e-12)
    assert (found.weight[~acting] == plan.weight[0].numpy()[~acting]).all()


def test_a_fresh_closed_loop_has_seen_the_entropy_of_the_rollout():
    config = Config(**SMALL)
    update = watch(config, 2, rollout=4)
    entropy = simulate(config, (2,)).entropy[0, 4]
    loop = Config(controller="entropic", target=0.6, controller_args={"tau": 0.0, "kp": 0.5, "ki": 0.0})
    weights = np.unique(described(update.tokens, planned_by(loop, update)).weight.round(12))
    assert weights == pytest.approx(sorted([1 - 0.5 * (entropy - 0.6), 1 + 0.5 * (entropy - 0.6)]), abs=1e-12)


def test_episodes():
    tokens = tokens_of(Config(env="episodes", states=2, rollouts=3, passes=2), rollout=1)
    assert tokens.p.shape == (2 * 16 * 4,)


def test_what_there_is_not():
    with pytest.raises(ValueError, match="env 'exact' enumerates outcomes and samples no tokens"):
        watch(Config(env="exact"))
    with pytest.raises(ValueError, match="rollout must be between 0 and 11, not 12"):
        watch(Config(**SMALL), rollout=12)
    with pytest.raises(ValueError, match="number must be between 0 and 2, not 3"):
        watch(Config(**SMALL), number=3)
    with pytest.raises(ValueError, match="needs truncated entropies, which an update lacks"):
        planned_by(Config(controller="truncated_entropy_bonus"), watch(Config(**SMALL)))


def test_mini_batches_are_updates():
    """The tokens of every update of a run, one after another, are those that the simulation watches."""
    config = Config(env="features", rollouts=3, pool=32, held_out=0)
    seen = []
    simulate(config, (2,), watch=lambda tokens, plan: seen.append(tokens))
    assert len(seen) == 6
    for i, tokens in enumerate(seen):
        update = watch(config, 2, rollout=i // 2, number=i % 2)
        assert update.step == i
        assert torch.equal(update.tokens.logp, tokens.logp)
    assert torch.equal(watch(config, 2, rollout=1).tokens.logp, seen[3].logp)
    with pytest.raises(ValueError, match="number must be between 0 and 1"):
        watch(config, number=2)
