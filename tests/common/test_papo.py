"""papo against numbers worked out by hand, and its polarity against the entropy change of a step."""

from math import nan

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entrostat import StepStats, Tokens, make, policy_stats

P = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)


def tokens(p=P) -> Tokens:
    """Each action with A = 1, then each with A = −1."""
    stats = policy_stats(p.log().expand(2 * len(p), -1))
    logp = p.log().repeat(2)
    advantage = torch.ones(len(p), dtype=torch.float64)
    moments = {name: getattr(stats, name) for name in ("entropy", "s2", "s2l")}
    return Tokens(logp=logp, old_logp=logp, advantage=torch.cat([advantage, -advantage]), **moments)


def weights(entropy, p=P, **settings) -> list[float]:
    controller = make("papo", **{"target": 0.5, "band": 0.2, **settings})
    controller.observe(StepStats(entropy=entropy))
    return controller.plan(tokens(p)).weight.expand(2 * len(p)).tolist()


def test_weights():
    """H = .802: p(log p + H) = .312, −.162, −.150 and S2L + H·S2 = .171, so that only .7 with A = 1 lowers H."""
    assert weights(0.3) == pytest.approx([0.5, 1.5, 1.5, 1.5, 0.5, 0.5])
    assert weights(0.4) == pytest.approx([0.75, 1.25, 1.25, 1.25, 0.75, 0.75])
    assert weights(0.7) == pytest.approx([1.5, 0.5, 0.5, 0.5, 1.5, 1.5])
    assert weights(0.5) == [1.0] * 6
    assert weights(nan) == [1.0] * 6
    assert weights(0.0, gamma=1.0) == [0, 2, 2, 2, 0, 0]


def test_the_sampled_token_alone_has_another_sign_between_the_boundaries():
    """.35 alone lowers H = 1.187 > −log .35 = 1.050; but .35·(log .35 + H) = .048 is below S2L + H·S2 = .073."""
    p = torch.tensor([0.45, 0.35, 0.1, 0.1], dtype=torch.float64)
    assert weights(0.3, p)[:4] == pytest.approx([0.5, 1.5, 1.5, 1.5])
    assert weights(0.3, p, estimator="sampled")[:4] == pytest.approx([0.5, 0.5, 1.5, 1.5])


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=8))
def test_polarity_is_the_sign_of_the_change_by_a_small_step(sizes):
    p = torch.tensor(sizes, dtype=torch.float64)
    p = p / p.sum()
    found = weights(0.0, p, gamma=0.5)
    start = policy_stats(p.log()).entropy
    for i, weight in enumerate(found):
        arm, sign = i % len(p), 1 if i < len(p) else -1
        step = 1e-5 * sign * (torch.nn.functional.one_hot(torch.tensor(arm), len(p)) - p)
        change = float(policy_stats(p.log() + step).entropy - start)
        if abs(change) > 1e-8:
            assert weight == pytest.approx(1 + 0.5 * (1 if change > 0 else -1))


def test_only_the_exact_polarity_needs_moments():
    assert make("papo", estimator="sampled").parts[0].needs == {"logp", "entropy"}
    assert make("papo").parts[0].needs == {"logp", "entropy", "s2", "s2l"}


def test_two_loops_on_weights_are_refused():
    with pytest.raises(ValueError, match="both closed loops on the weights"):
        make("papo+repo_r", **{"papo.target": 0.5, "repo_r.target": 0.5})
