"""Advantages that need more than rewards, by plain loops and by verl's functions."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from entrostat.advantages import gdpo, get_advantage, optimal_token, remax

GROUP = torch.tensor([3, 3, 3, 8, 8, 5])
LENGTH = [2, 4, 4, 1, 3, 2]
RESPONSE = torch.arange(6).repeat_interleave(torch.tensor(LENGTH))
REWARD = torch.tensor([1.0, 0.0, 0.5, 1.0, 0.0, 1.0], dtype=torch.float64)


def policy():
    """Return log π of the tokens that were sampled and Σπ² of five-armed policies, (N,) each."""
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(len(RESPONSE), 5, generator=g, dtype=torch.float64)
    logp = logits.log_softmax(-1)
    return logp[:, 0], (2 * logp).exp().sum(-1)


def padded(x):
    rows = torch.zeros(6, max(LENGTH), dtype=x.dtype)
    for i, row in enumerate(x.split(LENGTH)):
        rows[i, : len(row)] = row
    return rows


def test_optimal_token_by_plain_loops():
    logp, s2 = policy()
    squared = padded(1 - 2 * logp.exp() + s2)
    expected = []
    for i, length in enumerate(LENGTH):
        for t in range(length):
            there = [j for j in range(6) if GROUP[j] == GROUP[i] and LENGTH[j] > t]
            weight = [float(squared[j, : t + 1].sum()) for j in there]
            baseline = sum(w * float(REWARD[j]) for w, j in zip(weight, there, strict=True)) / sum(weight)
            expected.append(float(REWARD[i]) - (baseline if len(there) > 1 else 0.0))
    found = optimal_token(REWARD, GROUP, logp=logp, s2=s2, response=RESPONSE)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


def test_its_weight_is_the_squared_length_of_the_score():
    z = torch.randn(5, dtype=torch.float64, requires_grad=True)
    logp = z.log_softmax(-1)
    (score,) = torch.autograd.grad(logp[2], z)
    logp = logp.detach()
    assert float(1 - 2 * logp[2].exp() + (2 * logp).exp().sum()) == pytest.approx(float(score @ score))


def test_runs_side_by_side():
    logp, s2 = policy()
    two = torch.stack([REWARD, 1 - REWARD])
    both = optimal_token(two, GROUP, logp=logp.expand(2, -1), s2=s2.expand(2, -1), response=RESPONSE)
    for run in range(2):
        alone = optimal_token(two[run], GROUP, logp=logp, s2=s2, response=RESPONSE)
        torch.testing.assert_close(both[run], alone, rtol=1e-12, atol=1e-12)


def test_remax_by_hand():
    found = remax(REWARD, GROUP, greedy=torch.tensor([1, 1, 1, 0, 0, 0.5]))
    assert found.tolist() == [0, -1, -0.5, 1, 0, 0.5]


def test_gdpo_of_one_reward_is_grpo_whitened():
    length = torch.tensor(LENGTH)
    one = gdpo(REWARD, GROUP, rewards=REWARD[None], length=length)
    each = get_advantage("grpo")(REWARD, GROUP)[RESPONSE]
    expected = (each - each.mean()) / (each.var() + 1e-8).sqrt()
    torch.testing.assert_close(one[RESPONSE], expected, rtol=1e-12, atol=1e-12)


def test_gdpo_hears_a_small_reward():
    """The sum of the rewards hardly knows the second, a hundred times smaller; gdpo does."""
    group = torch.zeros(4, dtype=torch.int64)
    rewards = torch.tensor([[1.0, 0, 1, 0], [0.01, 0.01, 0, 0]])
    summed = get_advantage("grpo")(rewards.sum(0), group)
    assert summed[0] - summed[2] < 0.02
    found = gdpo(rewards.sum(0), group, rewards=rewards)
    assert found[0] - found[2] > 0.9
    half = gdpo(rewards.sum(0), group, rewards=rewards, weight=torch.tensor([1.0, 0.5]))
    assert 0.3 < half[0] - half[2] < found[0] - found[2]


@pytest.mark.slow
def test_verls_functions():
    core = pytest.importorskip("verl.trainer.ppo.core_algos", reason="pip install --no-deps -c constraints.txt verl")
    logp, s2 = policy()
    mask = padded(torch.ones_like(logp))
    last = torch.nn.functional.one_hot(torch.tensor(LENGTH) - 1, max(LENGTH))
    index = GROUP.numpy()
    theirs, _ = core.compute_optimal_token_baseline_advantage(
        REWARD[:, None] * last, mask, index, padded(logp), padded(s2)
    )
    found = optimal_token(REWARD, GROUP, logp=logp, s2=s2, response=RESPONSE)  # verl adds 1e-8 to the weights
    torch.testing.assert_close(padded(found), theirs, rtol=1e-7, atol=1e-7)
    greedy = torch.tensor([1, 1, 1, 0, 0, 0.5], dtype=torch.float64)
    theirs, _ = core.compute_remax_outcome_advantage(REWARD[:, None] * last, greedy, mask)
    assert torch.equal(remax(REWARD, GROUP, greedy=greedy)[:, None] * mask, theirs)
    # whole groups: of a group of one verl's GRPO takes the reward itself
    rows = slice(0, 5)
    length, prompts = torch.tensor(LENGTH[rows]), torch.zeros(5, 2)
    other = np.array([3.0, 1.0, 2.0, 0.0, 5.0], dtype=np.float32)
    batch = {"prompts": prompts, "attention_mask": torch.cat([torch.ones(5, 2), mask[rows]], 1).long()}
    parts = {"right": REWARD[rows].numpy().astype(np.float32), "other": other}
    config = SimpleNamespace(get={"gdpo_reward_keys": list(parts), "gdpo_reward_weights": [1.0, 0.25]}.get)
    theirs, _ = core.compute_gdpo_outcome_advantage(
        REWARD[rows, None] * last[rows], mask[rows], index[rows], config=config, non_tensor_batch=parts, batch=batch
    )
    found = gdpo(
        REWARD[rows],
        GROUP[rows],
        rewards=torch.stack([REWARD[rows], torch.from_numpy(other).double()]),
        weight=torch.tensor([1.0, 0.25]),
        length=length,
    )
    torch.testing.assert_close(found[:, None] * mask[rows], theirs.double(), rtol=1e-5, atol=1e-6)
