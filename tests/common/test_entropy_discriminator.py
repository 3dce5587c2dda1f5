"""clip_b and clip_v by hand, and against plain loops over tokens."""

from math import exp, log, sqrt

import pytest
import torch
from helpers import sampled_tokens

from entrostat import Tokens, make

A = torch.tensor([1.0, -1.0, -1.0, -1.0], dtype=torch.float64)
ONE_APART = torch.tensor([0.5, 0.5, 0.5, 0.1], dtype=torch.float64).log()
"""log π: of four scores of which three are equal, the other is √3 standard deviations from the mean."""
TWO_ARMS = torch.tensor([0.9, 0.9, 0.9, 0.1], dtype=torch.float64).log()


def two_arms(**changes) -> Tokens:
    """Tokens of the policy (.9, .1), where Σ p·S − S is −.1·2S₁ for the first arm and .9·2S₁ for the other."""
    h = -0.9 * log(0.9) - 0.1 * log(0.1)
    fields = {"entropy": h, "s2": 0.82, "s2l": 0.81 * log(0.9) + 0.01 * log(0.1)}
    held = {name: torch.full_like(TWO_ARMS, value) for name, value in fields.items()}
    return Tokens(**{"logp": TWO_ARMS, "old_logp": TWO_ARMS, "advantage": A, **held} | changes)


def dropped(spec: str, tokens: Tokens, **settings) -> list[bool]:
    plan = make(spec, **settings).plan(tokens)
    gone = ~plan.keep.expand(tokens.advantage.shape)
    assert torch.equal(gone, plan.weight.expand(gone.shape) == 0)
    assert plan.info[f"{spec}/dropped"].tolist() == gone.double().mean(-1).tolist()
    return gone.tolist()


def test_clip_b_by_hand():
    t = Tokens(logp=ONE_APART, old_logp=ONE_APART, advantage=A, entropy=torch.ones_like(A))
    assert dropped("clip_b", t, mu=1.73) == [False, False, False, True]
    assert dropped("clip_b", t, mu=1.74) == [False] * 4
    rewarded = Tokens(logp=ONE_APART, old_logp=ONE_APART, advantage=-A, entropy=torch.ones_like(A))
    assert dropped("clip_b", rewarded, mu=1.73, signs="both") == [False] * 4
    likely = torch.tensor([0.1, 0.1, 0.1, 0.5], dtype=torch.float64).log()
    upside_down = Tokens(logp=likely, old_logp=likely, advantage=-A, entropy=torch.ones_like(A))
    assert dropped("clip_b", upside_down, mu=1.73, signs="both") == [False, False, False, True]
    assert dropped("clip_b", upside_down, mu=1.73) == [False] * 4


def test_clip_v_by_hand():
    """The difference is centred by the token's own policy: .9·4/√3 = 2.078 standard deviations from 0, not √3."""
    assert dropped("clip_v", two_arms(), mu=2.07, k=1.0) == [False, False, False, True]
    assert dropped("clip_v", two_arms(), mu=2.09, k=1.0) == [False] * 4
    assert dropped("clip_v", two_arms(advantage=-A), mu=2.07, k=1.0) == [False] * 4


def test_clip_v_drops_no_more_than_its_share():
    t = sampled_tokens(60)
    few, many = (torch.tensor(dropped("clip_v", t, mu=0.2, k=k)) for k in (0.05, 1.0))
    assert few.sum() == 3 < many.sum()
    assert (many | ~few).all()
    assert sum(dropped("clip_v", t, mu=0.2, k=0.0)) == 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("signs", ["negative", "both"])
def test_clip_b_in_plain_loops(seed, signs):
    t = sampled_tokens(48, seed=seed)
    scores = [exp(lp) * (lp + h) for lp, h in zip(t.logp.tolist(), t.entropy.tolist(), strict=True)]
    mean = sum(scores) / len(scores)
    std = sqrt(sum((s - mean) ** 2 for s in scores) / len(scores))
    expected = [
        (a < 0 and s - mean < -0.7 * std) or (signs == "both" and a > 0 and s - mean > 0.7 * std)
        for a, s in zip(t.advantage.tolist(), scores, strict=True)
    ]
    assert 0 < sum(expected) < 24
    assert dropped("clip_b", t, mu=0.7, signs=signs) == expected


@pytest.mark.parametrize("seed", range(5))
def test_clip_v_in_plain_loops(seed):
    """With the policies themselves, not their moments."""
    g = torch.Generator().manual_seed(seed)
    rows = torch.softmax(2 * torch.randn(40, 6, generator=g, dtype=torch.float64), -1)
    action = torch.multinomial(rows, 1, generator=g)
    advantage = torch.randn(40, generator=g, dtype=torch.float64)
    gaps = []
    for p, a in zip(rows.tolist(), action[:, 0].tolist(), strict=True):
        h = -sum(x * log(x) for x in p)
        gaps.append(sum(x * x * (log(x) + h) for x in p) - p[a] * (log(p[a]) + h))
    mean = sum(gaps) / 40
    std = sqrt(sum((x - mean) ** 2 for x in gaps) / 40)
    expected = [a < 0 and x > 0.3 * std for a, x in zip(advantage.tolist(), gaps, strict=True)]
    assert any(expected)
    logp = rows.log()
    t = Tokens(
        logp=logp.gather(-1, action)[:, 0],
        old_logp=None,
        advantage=advantage,
        entropy=-(rows * logp).sum(-1),
        s2=(rows**2).sum(-1),
        s2l=(rows**2 * logp).sum(-1),
    )
    found = make("reinforce+clip_v", mu=0.3, k=1.0).plan(t)
    assert (~found.keep.expand(40)).tolist() == expected


@pytest.mark.parametrize("spec", ["clip_b", "clip_v"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_that_differ_by_rounding_are_equal(spec, dtype):
    noise = torch.finfo(dtype).eps * torch.randn(400, generator=torch.Generator().manual_seed(0), dtype=dtype)
    same = {name: torch.full((400,), value, dtype=dtype) for name, value in (("entropy", 1.1), ("s2", 0.4))}
    logp = torch.full((400,), -0.9, dtype=dtype) + noise
    t = Tokens(logp=logp, old_logp=logp, advantage=-torch.ones(400, dtype=dtype), **same, s2l=-0.9 * same["s2"])
    settings = {"k": 1.0} if spec == "clip_v" else {}
    assert not any(dropped(spec, t, mu=0.0, **settings))


ERRORS = [
    ("clip_b", {"mu": -1.0}, "clip_b: mu must not be negative"),
    ("clip_b", {"signs": "positive"}, "clip_b: signs must be one of negative, both"),
    ("clip_v", {"k": 1.5}, r"clip_v: k must lie in \[0, 1\]"),
]


@pytest.mark.parametrize(("spec", "settings", "error"), ERRORS)
def test_bad_settings(spec, settings, error):
    with pytest.raises(ValueError, match=error):
        make(spec, **settings)
