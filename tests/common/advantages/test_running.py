"""rae against the order of its released code: a plain loop over responses, one mean for each source."""

import pytest
import torch

from entrostat.advantages import get_advantage, rae, rae_baseline

GROUP = torch.zeros(5, dtype=torch.int64)
REWARD = torch.tensor([1.0, -1.0, 1.0, 0.0, 1.0], dtype=torch.float64)
SOURCE = torch.tensor([0, 1, 0, 1, 0])


def looped(reward, source, baseline, decay):
    """Scored against the mean before its own reward, which then moves it."""
    means, found = list(baseline), []
    for r, s in zip(reward, source, strict=True):
        found.append(r - means[s])
        means[s] = decay * means[s] + (1 - decay) * r
    return found, means


def test_by_hand():
    """Source 0: b = 0, .5, .75, then .875. Source 1: b = .2, −.4, then −.2. Source 2 has no response."""
    start = torch.tensor([0.0, 0.2, 7.0], dtype=torch.float64)
    found = get_advantage("rae decay=0.5")(REWARD, GROUP, source=SOURCE, baseline=start)
    assert found.tolist() == pytest.approx([1, -1.2, 0.5, 0.4, 0.25], abs=1e-15)
    after = rae_baseline(REWARD, SOURCE, start, decay=0.5)
    assert after.tolist() == pytest.approx([0.875, -0.2, 7.0], abs=1e-15)
    assert start.tolist() == [0.0, 0.2, 7.0]


@pytest.mark.parametrize("decay", [0.0, 0.05, 0.95, 0.999])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 1000])
def test_plain_loops(n, decay):
    g = torch.Generator().manual_seed(n)
    reward = torch.randn(2, n, generator=g, dtype=torch.float64)
    source = torch.randint(0, 4, (n,), generator=g)
    start = torch.randn(2, 5, generator=g, dtype=torch.float64)
    found = rae(reward, torch.arange(n), source=source, baseline=start, decay=decay)
    after = rae_baseline(reward, source, start, decay)
    for run in range(2):
        advantage, means = looped(reward[run].tolist(), source.tolist(), start[run].tolist(), decay)
        assert found[run].tolist() == pytest.approx(advantage, rel=1e-12, abs=1e-13)
        assert after[run].tolist() == pytest.approx(means, rel=1e-12, abs=1e-13)


def test_two_calls_are_one():
    """The state is all that the second call needs, also in float32 rewards."""
    reward = REWARD.float()
    whole = rae(reward, GROUP, source=SOURCE, baseline=torch.zeros(2))
    between = rae_baseline(reward[:2], SOURCE[:2], torch.zeros(2))
    rest = rae(reward[2:], GROUP[2:], source=SOURCE[2:], baseline=between)
    assert torch.equal(rest, whole[2:])
    assert (rest.dtype, between.dtype) == (torch.float32, torch.float64)
    after, at_once = rae_baseline(reward[2:], SOURCE[2:], between), rae_baseline(reward, SOURCE, torch.zeros(2))
    torch.testing.assert_close(after, at_once, rtol=1e-14, atol=0)


def test_a_baseline_of_its_own_removes_the_edge_of_a_role():
    """In a zero-sum game that the first player wins four times in five, both roles have mean advantage 0."""
    g = torch.Generator().manual_seed(0)
    won = torch.where(torch.rand(4000, generator=g) < 0.8, 1.0, -1.0)
    reward, source = torch.stack([won, -won], 1).flatten(), torch.arange(2).repeat(4000)
    found = rae(reward, torch.arange(8000) // 2, source=source, baseline=torch.zeros(2))[1000:]
    for role in (0, 1):
        assert abs(float(found[source[1000:] == role].mean())) < 0.02
    assert abs(float(reward[source == 0].mean())) > 0.5


BAD = [
    ({"source": None}, "advantage 'rae' needs source=, which was not given"),
    ({"baseline": None}, "advantage 'rae' needs baseline=, which was not given"),
    ({"source": SOURCE + 1}, "advantage 'rae': source must be from 0 to 1, the baselines that are given"),
    ({"source": SOURCE - 1}, "advantage 'rae': source must be from 0 to 1"),
    ({"source": SOURCE[:4]}, "advantage 'rae': source must have one integer for each of the 5 rewards"),
    ({"source": SOURCE.float()}, "advantage 'rae': source must have one integer for each of the 5 rewards"),
    ({"baseline": torch.tensor([0.0, torch.nan])}, "advantage 'rae': a baseline is not finite; begin with 0"),
    ({"decay": 1.0}, "decay of the advantage 'rae' must lie in"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_errors_say_what_to_do(wrong, message):
    given = {"source": SOURCE, "baseline": torch.zeros(2), **wrong}
    with pytest.raises(ValueError, match=message):
        rae(REWARD, GROUP, **given)


def test_the_state_is_not_spoilt():
    for wrong in (torch.nan, torch.inf):
        with pytest.raises(ValueError, match="advantage 'rae': a reward is not finite"):
            rae_baseline(torch.tensor([wrong, 0.0]), SOURCE[:2], torch.zeros(2))
    with pytest.raises(ValueError, match=r"decay of the advantage 'rae' must lie in \[0, 1\); got 1.5"):
        rae_baseline(REWARD, SOURCE, torch.zeros(2), 1.5)
