"""Each surrogate against numbers worked out by hand."""

from math import exp, log

import pytest
import torch

from entrostat import LocalReduce, Tokens, make
from entrostat.surrogates.aggregation import token_scale

RATIOS = [0.5, 0.9, 1.0, 1.25, 1.5, 30.0]


def losses(spec: str, sign: float, **settings) -> list[float]:
    """N times the loss of one token of each ratio, advantage 2·sign."""
    old = torch.full((len(RATIOS),), -3.0, dtype=torch.float64)
    logp = old + torch.tensor(RATIOS, dtype=torch.float64).log()
    tokens = Tokens(logp=old, old_logp=old, advantage=torch.full_like(old, 2.0 * sign))
    plan = make(spec, **settings).plan(tokens)
    return (plan.token_loss(logp) * len(RATIOS)).tolist()


@pytest.mark.parametrize(
    ("spec", "settings", "positive", "negative"),
    [
        # −2·min(r, 1+εh) and 2·max(r, 1−εl)
        ("ppo", {}, [-1, -1.8, -2, -2.4, -2.4, -2.4], [1.6, 1.8, 2, 2.5, 3, 60]),
        ("grpo", {}, [-1, -1.8, -2, -2.4, -2.4, -2.4], [1.6, 1.8, 2, 2.5, 3, 60]),
        ("ppo", {"preset": "released"}, [-1, -1.8, -2, -2.4, -2.4, -2.4], [1.6, 1.8, 2, 2.5, 3, 20]),
        ("ppo", {"dual_clip": 3.0}, [-1, -1.8, -2, -2.4, -2.4, -2.4], [1.6, 1.8, 2, 2.5, 3, 6]),
        ("clip_higher", {}, [-1, -1.8, -2, -2.5, -2.56, -2.56], [1.6, 1.8, 2, 2.5, 3, 60]),
        ("clip_lower", {}, [-1, -1.8, -2, -2.4, -2.4, -2.4], [1.44, 1.8, 2, 2.5, 3, 60]),
        ("clip_tighter", {}, [-1, -1.8, -2, -2.4, -2.4, -2.4], [1.76, 1.8, 2, 2.5, 3, 60]),
        ("clip_free", {}, [-1, -1.8, -2, -2.5, -3, -60], [1, 1.8, 2, 2.5, 3, 60]),
    ],
)
def test_ratio_losses(spec, settings, positive, negative):
    assert losses(spec, +1, **settings) == pytest.approx(positive, rel=1e-12)
    assert losses(spec, -1, **settings) == pytest.approx(negative, rel=1e-12)


def test_reinforce_is_minus_advantage_times_logp():
    assert losses("reinforce", 1) == pytest.approx([-2 * (-3 + log(r)) for r in RATIOS], rel=1e-12)


def test_log_ratio_is_limited_to_20():
    tokens = Tokens(logp=torch.zeros(1), old_logp=torch.tensor([-50.0]).double(), advantage=-torch.ones(1).double())
    loss = make("clip_free").plan(tokens).loss(torch.zeros(1, dtype=torch.float64))
    assert loss.item() == pytest.approx(exp(20), rel=1e-12)


def aggregate(**settings) -> list[float]:
    """Per-token scale of two sequences of 1 and 3 tokens."""
    n = 4
    tokens = Tokens(
        logp=torch.zeros(n),
        old_logp=torch.zeros(n),
        advantage=torch.ones(n, dtype=torch.float64),
        seq_id=torch.tensor([7, 9, 9, 9]),
    )
    plan = make("ppo", **settings).plan(tokens)
    return plan.scale.expand(n).tolist()


def test_aggregations():
    assert aggregate() == [0.25] * 4
    assert aggregate(aggregation="seq-mean-token-mean") == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])
    assert aggregate(aggregation="seq-mean-token-sum") == pytest.approx([0.5] * 4, rel=1e-15)
    assert aggregate(aggregation="fixed", constant=10.0) == pytest.approx([0.1] * 4)


def test_denominator_kept_leaves_dropped_tokens_out():
    logp = torch.tensor([-3.0, -1.0, -1.0, -1.0], dtype=torch.float64)
    tokens = Tokens(logp=logp, old_logp=logp, advantage=torch.tensor([-3.0, 1.0, 1.0, 1.0]).double())
    settings = {"k": 0.25, "omega_high": 100.0}
    assert make("clip_cov", **settings).plan(tokens).scale.tolist() == [0.25]
    assert make("clip_cov", denominator="kept", **settings).plan(tokens).scale.tolist() == pytest.approx([1 / 3])


class Expected(LocalReduce):
    """Tokens are outcomes, which count by how often they are expected."""

    def __init__(self, frequency: list[float]) -> None:
        self.frequency = torch.tensor(frequency, dtype=torch.float64)

    def count(self, mask: torch.Tensor) -> torch.Tensor:
        return (mask * self.frequency).sum(-1)


@pytest.mark.parametrize(
    ("aggregation", "kept", "scale"),
    [
        ("token-mean", [True, True, False, False], [1 / 0.4] * 4),
        ("token-mean", [False, True, True, True], [1 / 3.9] * 4),
        ("token-mean", [False] * 4, [0.0] * 4),
        ("seq-mean-token-sum", [True, True, False, False], [1 / 0.4] * 4),
        ("seq-mean-token-mean", [True, True, False, False], [1 / 0.4, 1 / 0.4, 0, 0]),
        ("seq-mean-token-mean", [False] * 4, [0.0] * 4),
    ],
)
def test_an_expected_number_of_kept_tokens_may_be_below_one(aggregation, kept, scale):
    """Four outcomes, each a response of one token; .1 + .3 of 4 are kept, so that their mean divides by .4."""
    t = Tokens(logp=None, old_logp=None, advantage=torch.ones(4).double(), seq_id=torch.arange(4))
    reduce = Expected([0.1, 0.3, 0.6, 3.0])
    found = token_scale(t, torch.tensor(kept), reduce, aggregation, denominator="kept", constant=1.0)
    assert found.expand(4).tolist() == pytest.approx(scale, rel=1e-15)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"aggregation": "mean"}, "aggregation must be one of token-mean"),
        ({"denominator": "some"}, "denominator must be one of all, kept"),
        ({"constant": 0.0}, "constant must be positive"),
        ({"eps_low": -0.1}, "eps_low must not be negative"),
        ({"dual_clip": 0.5}, "dual_clip must be above 1"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        make("ppo", **settings)
