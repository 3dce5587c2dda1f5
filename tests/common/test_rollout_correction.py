"""Importance weights of two responses of 2 and 3 tokens, worked out by hand."""

from dataclasses import replace
from math import exp

import pytest
import torch
from helpers import sampled_tokens

from entrostat import Tokens, make

SEQ = torch.tensor([4, 4, 2, 2, 2])
GAP = torch.tensor([0.1, 1.0, -0.6, 0.4, 0.3], dtype=torch.float64)
"""log π_old − log π_rollout."""
OLD = torch.full((5,), -2.0, dtype=torch.float64)
A = torch.tensor([2.0, 2.0, -3.0, -3.0, -3.0], dtype=torch.float64)


def planned(mode, cap, floor=0.0):
    tokens = Tokens(logp=OLD + 0.05, old_logp=OLD, rollout_logp=OLD - GAP, advantage=A, seq_id=SEQ)
    return make("rollout_correction", mode=mode, cap=cap, floor=floor).plan(tokens)


TOKEN = [exp(g) for g in GAP.tolist()]
SEQUENCE = [exp(1.1)] * 2 + [exp(0.1)] * 3
CASES = {
    "token_truncate": ([*TOKEN[:1], 1.4, *TOKEN[2:3], 1.4, *TOKEN[4:]], 2 / 5),
    "token_mask": ([*TOKEN[:1], 0.0, *TOKEN[2:3], 0.0, *TOKEN[4:]], 2 / 5),
    "sequence_truncate": ([1.4] * 2 + SEQUENCE[2:], 2 / 5),
    "sequence_mask": ([0.0] * 2 + SEQUENCE[2:], 2 / 5),
    "geometric_truncate": ([1.4] * 2 + [exp(0.1 / 3)] * 3, 2 / 5),
    "geometric_mask": ([0.0] * 2 + [exp(0.1 / 3)] * 3, 2 / 5),
}


@pytest.mark.parametrize("mode", CASES)
def test_by_hand(mode):
    weight, beyond = CASES[mode]
    plan = planned(mode, 1.4)
    assert plan.weight.tolist() == pytest.approx(weight, rel=1e-12)
    assert plan.info["rollout_correction/beyond"].item() == beyond
    assert plan.keep.expand(5).tolist() == [w > 0 for w in weight]
    ratio = exp(0.05)  # within the bounds of the surrogate: ratios are those to π_old
    expected = [-w * a * ratio / 5 for w, a in zip(weight, A.tolist(), strict=True)]
    assert plan.token_loss(OLD + 0.05).tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("token_truncate", [TOKEN[0], 1.4, 0.7, 1.4, TOKEN[4]]),
        ("token_mask", [TOKEN[0], 0.0, 0.0, 0.0, TOKEN[4]]),
        ("sequence_mask", [0.0, 0.0, *SEQUENCE[2:]]),
    ],
)
def test_two_sided(mode, expected):
    """e^−.6 is .549, below the floor."""
    plan = planned(mode, 1.4, floor=0.7)
    assert plan.weight.tolist() == pytest.approx(expected, rel=1e-12)
    assert plan.keep.expand(5).tolist() == [w > 0 for w in expected]
    assert plan.info["rollout_correction/below"].item() == (0.2 if mode.startswith("token") else 0)


def test_icepop_is_the_released_preset():
    part = make("rollout_correction", "released").parts[0]
    assert (part.mode, part.floor, part.cap) == ("token_mask", 0.5, 5.0)


@pytest.mark.parametrize("cap", [1.0, 2.0])
@pytest.mark.parametrize("mode", CASES)
def test_one_program_needs_no_correction(mode, cap):
    tokens = sampled_tokens(40)
    same = replace(tokens, rollout_logp=tokens.old_logp)
    plain = make("ppo").plan(tokens).token_loss(tokens.logp)
    assert torch.equal(make("ppo+rollout_correction", mode=mode, cap=cap).plan(same).token_loss(tokens.logp), plain)


@pytest.mark.parametrize("mode", CASES)
def test_what_the_rollout_policy_could_not_sample_is_beyond(mode):
    rollout = torch.tensor([-torch.inf, -2.0, -2.0, -2.0, -2.0], dtype=torch.float64)
    tokens = Tokens(logp=OLD, old_logp=OLD, rollout_logp=rollout, advantage=A, seq_id=SEQ)
    most = 1.4 if mode.endswith("truncate") else 0.0
    expected = [most, 1.0 if mode.startswith("token") else most, 1.0, 1.0, 1.0]
    assert make("rollout_correction", mode=mode, cap=1.4).plan(tokens).weight.tolist() == expected


def test_sequences_are_asked_for_where_they_matter():
    tokens = Tokens(logp=OLD, old_logp=OLD, rollout_logp=OLD, advantage=A)
    assert make("rollout_correction").plan(tokens).weight.tolist() == [1] * 5
    with pytest.raises(ValueError, match=r"'rollout_correction' needs Tokens\.seq_id"):
        make("rollout_correction", mode="sequence_mask").plan(tokens)


def test_the_corrected_gradient_is_that_of_samples_of_the_trainers_policy():
    """Over many samples of π_rollout the weighted gradient tends to the expectation under π_old, unweighted not."""
    generator = torch.Generator().manual_seed(0)
    trainer, rollout = torch.randn(2, 6, generator=generator, dtype=torch.float64).log_softmax(-1)
    reward = torch.randn(6, generator=generator, dtype=torch.float64)
    arm = torch.multinomial(rollout.exp(), 400_000, replacement=True, generator=generator)
    tokens = Tokens(logp=trainer[arm], old_logp=trainer[arm], rollout_logp=rollout[arm], advantage=reward[arm])
    expected = -trainer.exp() * (reward - trainer.exp() @ reward)

    def gradient(spec, **settings):
        slope = make(spec, **settings).plan(tokens).coefficients(trainer[arm])[0]
        in_logits = torch.zeros(6, dtype=torch.float64).scatter_add(0, arm, slope)
        return in_logits - slope.sum() * trainer.exp()

    found, plain = gradient("reinforce+rollout_correction", cap=1e9), gradient("reinforce")
    assert (found - expected).abs().max() < 0.02
    assert (plain - expected).abs().max() > 0.1


def test_bad_settings():
    with pytest.raises(ValueError, match="mode must be one of"):
        make("rollout_correction", mode="tis")
    with pytest.raises(ValueError, match="cap must be positive"):
        make("rollout_correction", cap=0)
    with pytest.raises(ValueError, match="floor must not be above cap"):
        make("rollout_correction", floor=3.0)
