"""arbitrary_entropy against numbers worked out by hand."""

from math import nan

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat import StepStats, Tokens, make
from entrostat.numbers.support import Support, truncated_logp

P = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
LENGTHS = torch.tensor([1, 2, 1])
SEQUENCE = torch.repeat_interleave(torch.tensor([4, 9, 2]), LENGTHS)
ACTION = torch.tensor([0, 1, 0, 1])
REWARD = torch.repeat_interleave(torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64), LENGTHS)
A = torch.tensor([0.6, -1.2, -1.2, 0.6], dtype=torch.float64)


def tokens(proxy: Support, reward=REWARD) -> Tokens:
    logp, tempered = P.log()[ACTION], truncated_logp(P.log(), proxy)[ACTION]
    return Tokens(logp=logp, old_logp=logp, proxy_logp=tempered, advantage=A, reward=reward, seq_id=SEQUENCE)


def advantages(entropy, reward=REWARD, **given_settings) -> list[float]:
    controller = make("arbitrary_entropy", **{"target": 0.5, **given_settings})
    controller.observe(StepStats(entropy=entropy))
    return controller.plan(tokens(controller.proxy, reward)).advantage.tolist()


def test_correct_responses_are_learned_as_if_they_were_drawn_hotter():
    """At T = 2 the probabilities are √.5, .5, .5 divided by their sum. Two of three are correct: α = .1/(.1 + 2/3)."""
    alpha = 0.1 / (0.1 + 2 / 3)
    common, rare = (0.5**0.5 / (1 + 0.5**0.5) / 0.5, 0.5 / (1 + 0.5**0.5) / 0.25)
    expected = [0.6 + alpha * (common - 0.6), (1 - alpha) * -1.2, (1 - alpha) * -1.2, 0.6 + alpha * (rare - 0.6)]
    assert advantages(0.2, temperature_high=2.0) == pytest.approx(expected, rel=1e-12)


def test_and_colder_above_the_target():
    """At T = .5 the probabilities are 2/3, 1/6, 1/6. The distance of .05 counts in full: α = .05/(.05 + 2/3)."""
    alpha = 0.05 / (0.05 + 2 / 3)
    expected = [(1 - alpha) * 0.6 + alpha * 4 / 3, (1 - alpha) * -1.2, (1 - alpha) * -1.2]
    expected.append((1 - alpha) * 0.6 + alpha * 2 / 3)
    assert advantages(0.55, temperature_low=0.5) == pytest.approx(expected, rel=1e-12)


def test_nothing_changes_on_target_without_a_reading_or_without_a_correct_response():
    for entropy in (0.5, nan):
        assert advantages(entropy) == A.tolist()
    assert advantages(0.2, torch.zeros(4, dtype=torch.float64)) == A.tolist()
    assert advantages(0.2, REWARD, correct=1.0) == A.tolist()


def test_the_temperature_follows_the_side_of_the_target():
    controller = make("arbitrary_entropy", target=0.5)
    found = [float(controller.proxy.temperature)]
    for entropy in (0.4, 0.5, 0.6, nan):
        controller.observe(StepStats(entropy=entropy))
        found.append(float(controller.proxy.temperature))
    assert found == [1.2, 1.2, 1.2, 0.8, 0.8]


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=8), st.floats(1.01, 5), st.booleans())
def test_without_advantages_the_policy_is_pulled_to_the_one_at_that_temperature(sizes, spread, hotter):
    """All responses are correct and A = 0: Σ_a p_a·A_a·∂log p_a/∂z is α(π_T − p)."""
    p = torch.tensor(sizes, dtype=torch.float64)
    p = p / p.sum()
    controller = make("arbitrary_entropy", temperature_high=spread, temperature_low=1 / spread)
    controller.observe(StepStats(entropy=0.4 if hotter else 0.6))
    one = torch.ones_like(p)
    tempered = (p.log() / (spread if hotter else 1 / spread)).softmax(-1)
    columns = {"logp": p.log(), "old_logp": p.log(), "proxy_logp": truncated_logp(p.log(), controller.proxy)}
    plan = controller.plan(Tokens(**columns, advantage=0 * one, reward=one, seq_id=torch.arange(len(p))))
    weighted = p * plan.advantage
    pull = weighted - p * weighted.sum()
    torch.testing.assert_close(pull, (tempered - p) * 0.1 / 1.1, rtol=1e-9, atol=1e-14)


def test_tokens_have_one_proxy():
    with pytest.raises(ValueError, match="lp_reg"):
        make("arbitrary_entropy+lp_reg")
