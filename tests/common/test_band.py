"""aepo and entrocraft: which sign of the advantage is learned from."""

import pytest
import torch

from entrostat import StepStats, Tokens, make

A = torch.tensor([2.0, -1.0, 0.0], dtype=torch.float64)
TOKENS = Tokens(logp=torch.zeros(3), old_logp=torch.zeros(3), advantage=A)
ALL, POSITIVE, NEGATIVE = [1, 1, 1], [1, 0, 1], [0, 1, 1]
NAN = float("nan")


def weights(controller, entropies, **stats) -> list[list[float]]:
    seen = []
    for entropy in entropies:
        controller.observe(StepStats(entropy=entropy, **stats))
        seen.append(controller.plan(TOKENS).weight.tolist())
    return seen


def test_aepo_masks_from_the_top_of_the_band_to_its_bottom():
    c = make("aepo", target=0.5, band=0.25)
    assert c.plan(TOKENS).weight.tolist() == ALL
    entropies = [0.5, 0.75, 0.8, 0.5, 0.25, NAN, 0.2, 0.5, 0.75, NAN, 0.9]
    expected = [ALL, ALL, *[POSITIVE] * 4, *[ALL] * 4, POSITIVE]
    assert weights(c, entropies) == expected


def test_entrocraft_takes_the_side_that_leads_back():
    c = make("entrocraft", target=0.5, band=0.125)
    entropies = [0.5, 0.625, 0.7, NAN, 0.375, 0.3, NAN, 0.5]
    assert weights(c, entropies) == [ALL, ALL, POSITIVE, POSITIVE, ALL, NEGATIVE, NEGATIVE, ALL]


@pytest.mark.parametrize("name", ["aepo", "entrocraft"])
def test_all_tokens_count_until_an_entropy_was_seen(name):
    assert make(name).plan(TOKENS).weight.tolist() == ALL
    assert weights(make(name), [NAN]) == [ALL]


def test_entrocraft_anneals_its_target():
    c = make("entrocraft", target=1.0, band=0.1, anneal=0.5)
    seen = [weights(c, [0.75], step=step, total_steps=5)[0] for step in range(5)]  # targets 1, .875, .75, .625, .5
    assert seen == [NEGATIVE, NEGATIVE, ALL, POSITIVE, POSITIVE]
    two = [weights(c, [0.75], step=step, total_steps=2)[0] for step in range(2)]  # targets 1 and .5
    assert two == [NEGATIVE, POSITIVE]
    for anneal in (0.5, torch.tensor([0.0, 0.5])):
        with pytest.raises(ValueError, match=r"needs StepStats\.total_steps"):
            make("entrocraft", target=1.0, anneal=anneal).observe(StepStats(entropy=0.5))


@pytest.mark.parametrize("name", ["aepo", "entrocraft"])
def test_state_is_exact_and_runs_are_their_own(name):
    c = make(name, target=torch.tensor([0.2, 0.6]), band=0.05)
    c.observe(StepStats(entropy=torch.tensor([0.4, 0.4])))
    runs = Tokens(logp=torch.zeros(2, 3), old_logp=torch.zeros(2, 3), advantage=A.expand(2, 3))
    below = ALL if name == "aepo" else NEGATIVE
    assert c.plan(runs).weight.tolist() == [POSITIVE, below]
    again = make(name, target=torch.tensor([0.2, 0.6]), band=0.05)
    again.load_state_dict(c.state_dict())
    for controller in (c, again):
        controller.observe(StepStats(entropy=torch.tensor([0.2, NAN])))
    assert torch.equal(c.plan(runs).weight, again.plan(runs).weight)
    assert c.plan(runs).weight.tolist() == [POSITIVE if name == "aepo" else ALL, below]
    assert all(torch.equal(again.state_dict()[name][key], value) for key, value in c.state_dict()[name].items())


@pytest.mark.parametrize("name", ["aepo", "entrocraft"])
def test_bad_band(name):
    with pytest.raises(ValueError, match="band must not be negative"):
        make(name, band=-0.1)


def test_one_closed_loop_on_the_weights():
    with pytest.raises(ValueError, match="both closed loops"):
        make("aepo+entrocraft", **{"aepo.target": 0.5})


def test_entrocraft_released_trains_on_the_score_of_one_sign():
    """Rewards 1, 0 and .5 have the scores 1, −1 and 0."""
    tokens = Tokens(**{**vars(TOKENS), "reward": torch.tensor([1.0, 0.0, 0.5], dtype=torch.float64)})
    c = make("entrocraft", "released", anneal=0.0)
    for entropy, expected in ((0.61, A.tolist()), (0.8, [1, 0, 0]), (0.5, [0, -1, 0]), (0.69, A.tolist())):
        c.observe(StepStats(entropy=entropy))
        plan = c.plan(tokens)
        assert plan.advantage.tolist() == expected
        assert plan.keep.all()
    c.observe(StepStats(entropy=0.8))
    assert c.plan(tokens).info["entrocraft/dropped"].item() == pytest.approx(2 / 3)
    signed = Tokens(**{**vars(TOKENS), "reward": torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)})
    c = make("entrocraft", "released", anneal=0.0, wrong_reward=-1.0)
    c.observe(StepStats(entropy=0.5))
    assert c.plan(signed).advantage.tolist() == [0, -1, 0]
    with pytest.raises(ValueError, match=r"'entrocraft' needs Tokens\.reward"):
        c.plan(TOKENS)


@pytest.mark.parametrize(
    ("settings", "bands"),
    [
        ({}, [(0.6, 0.7), (0.55, 0.65), (0.5, 0.6), (0.45, 0.55), (0.4, 0.5)]),
        (
            {"anneal": 0.0, "target": "cosine(0.65, 0.15)"},
            [(0.6, 0.7), (0.526777, 0.626777), (0.35, 0.45), (0.173223, 0.273223), (0.1, 0.2)],
        ),
    ],
)
def test_entrocraft_released_bands(settings, bands):
    """From .6–.7 to .4–.5 linearly; and to .1–.2 along a cosine."""
    for step, (low, high) in enumerate(bands):
        for entropy, side in ((low - 1e-5, -1), (low + 1e-5, 0), (high - 1e-5, 0), (high + 1e-5, 1)):
            c = make("entrocraft", "released", **settings)
            c.observe(StepStats(entropy=entropy, step=step, total_steps=5))
            assert c.parts[0].side.item() == side
