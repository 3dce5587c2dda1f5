"""Trees of responses: scores by autograd, variances by sampling, and the baseline of least variance by moving it."""

import pytest
import torch

from toybandit.claims.ensembles import random_logits
from toybandit.claims.token_baselines import (
    ARMS,
    SPREAD,
    energy,
    excess,
    from_the_mean,
    groups_of,
    least,
    mean_reward,
    of_the_others,
    own_energy,
    step,
    tree,
    variance,
    weighted,
    with_itself,
)


def test_scores_are_the_gradients_of_log_probabilities():
    """Two tokens: four tables of three logits, the first for the empty prefix."""
    drawn = tree(1, 2)
    tables = [
        random_logits(ARMS**t, ARMS, SPREAD, f"prefixes 2 {t}").flatten().requires_grad_()  # as `tree` draws them
        for t in range(2)
    ]
    for response in range(ARMS**2):
        first, second = divmod(response, ARMS)
        rows = tables[0].log_softmax(-1), tables[1].reshape(ARMS, ARMS)[first].log_softmax(-1)
        for place, (row, arm) in enumerate(zip(rows, (first, second), strict=True)):
            grads = torch.autograd.grad(row[arm], tables, allow_unused=True)
            expected = torch.cat([torch.zeros(n) if g is None else g for g, n in zip(grads, (3, 9), strict=True)])
            assert torch.allclose(drawn.score[0, response, place], expected.double())
            assert drawn.logp[0, response, place] == pytest.approx(float(row[arm].detach()))
    assert torch.allclose(drawn.likelihood.sum(-1), torch.ones(1, dtype=torch.float64))


def test_energy_is_the_squared_length_of_the_score():
    drawn = tree(5, 3)
    assert torch.allclose(own_energy(drawn), (drawn.score**2).sum(-1))
    assert torch.allclose(energy(drawn), (drawn.score.cumsum(-2) ** 2).sum(-1)), "gradients of places are orthogonal"


def test_variance_is_that_of_sampled_responses():
    drawn, n = tree(1, 3), 400_000
    baseline = mean_reward(drawn)
    response = torch.multinomial(drawn.likelihood[0], n, True, generator=torch.Generator().manual_seed(1))
    weights = drawn.reward[0, :, None] - baseline
    gradients = torch.einsum("yt,ytd->yd", weights, drawn.score[0])[response]
    power = (gradients - gradients.mean(0)).square().sum(-1)
    assert abs(power.mean() - variance(drawn, baseline)[0]) < 5 * power.std() / n**0.5


@pytest.mark.parametrize("length", [1, 2, 3])
def test_no_other_baseline_has_a_lower_variance(length):
    drawn, g = tree(20, length), torch.Generator().manual_seed(length)
    best = least(drawn)
    for _ in range(20):
        moved = best + 0.1 * torch.randn(best.shape, generator=g, dtype=torch.float64)
        assert (variance(drawn, moved) > variance(drawn, best)).all()
    assert torch.allclose(best, weighted(drawn, own_energy(drawn))), "the token's own energy weighs"


def test_one_number_for_a_response_is_best_with_the_whole_sum():
    """Among baselines that are the same at all places, E[R·W_L]/E[W_L] has the least variance."""
    drawn = tree(20, 3)
    at_the_end = weighted(drawn, energy(drawn))[:, -1:].expand(-1, 3)
    for move in (-0.05, -0.01, 0.01, 0.05):
        assert (excess(drawn, at_the_end + move) > excess(drawn, at_the_end)).all()


def test_steps_of_groups_are_those_of_sampled_groups():
    drawn, n = tree(1, 2), 200_000
    members, chance = groups_of(drawn, 2)
    assert torch.allclose(chance.sum(-1), torch.ones(1, dtype=torch.float64))
    advantage = with_itself(drawn, members)
    expected = step(drawn, advantage, members, chance)
    group = torch.multinomial(chance[0], n, True, generator=torch.Generator().manual_seed(2))
    steps = torch.einsum("gmt,gmtd->gd", advantage[0], drawn.score[0][members])[group] / 2
    along = (steps.mean(0) @ expected.true[0]) / (expected.true[0] @ expected.true[0])
    error = (steps.mean(0) / along - expected.expected[0]).norm() / expected.expected[0].norm()
    assert error < 0.03
    assert expected.aside[0] > 1e-4


def test_a_response_left_out_of_its_baseline_turns_nothing():
    drawn = tree(6, 2)
    members, chance = groups_of(drawn, 3)
    for advantage in (of_the_others, from_the_mean):
        assert step(drawn, advantage(drawn, members), members, chance).aside.max() < 1e-20
    by_hand = (
        drawn.reward[0, 4] - (drawn.reward[0, [1, 2]] @ energy(drawn)[0, [1, 2], 1]) / energy(drawn)[0, [1, 2], 1].sum()
    )
    at = int(((members == torch.tensor([4, 1, 2])).all(-1)).nonzero())
    assert of_the_others(drawn, members)[0, at, 0, 1] == pytest.approx(float(by_hand))
