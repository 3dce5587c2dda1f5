"""STEER on three tokens whose Ω is worked out by hand."""

from math import exp, log

import pytest
import torch
from helpers import sampled_tokens

from entrostat import Tokens, make

P = [0.5, 0.25, 0.8]
H = [1.0, 0.4, 0.6]
OLD_H = [0.9, 0.4, 0.6]
A = [1.0, -2.0, 1.0]
RATIO = [1.0, 1.0, 1.5]  # the last token is clipped at 1.2
OMEGA = [abs(r * a * (1 - p) * (log(p) + h)) for p, h, a, r in zip(P, H, A, RATIO, strict=True)]


def column(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def tokens() -> Tokens:
    logp = column(P).log()
    return Tokens(
        logp=logp,
        old_logp=logp - column(RATIO).log(),
        advantage=column(A),
        entropy=column(H),
        old_entropy=column(OLD_H),
    )


def test_exponential_mapping():
    omega = [OMEGA[0], OMEGA[1], 0.0]  # 1_clip takes the last token out
    expected = [exp(log(0.7) * w / OMEGA[1]) for w in omega]
    plan = make("steer").plan(tokens())
    assert OMEGA[1] == max(OMEGA)
    assert plan.weight.tolist() == pytest.approx(expected, rel=1e-12)
    assert plan.info["steer/omega_max"].item() == pytest.approx(OMEGA[1])


def test_released_values():
    """H at rollout time, no 1_clip, λ_min .8, max Ω at least .02."""
    omega = [abs(r * a * (1 - p) * (log(p) + h)) for p, h, a, r in zip(P, OLD_H, A, RATIO, strict=True)]
    expected = [exp(log(0.8) * w / max(omega)) for w in omega]
    assert make("steer", "released").plan(tokens()).weight.tolist() == pytest.approx(expected, rel=1e-12)


def test_floor_keeps_small_changes_near_weight_one():
    floor = 10.0
    expected = [exp(log(0.8) * w / floor) for w in [OMEGA[0], OMEGA[1], 0.0]]
    plan = make("steer", lambda_min=0.8, omega_floor=floor).plan(tokens())
    assert plan.weight.tolist() == pytest.approx(expected, rel=1e-12)


def test_linear_mapping():
    plan = make("steer", mapping="linear").plan(tokens())
    assert plan.weight.tolist() == pytest.approx([1.2 - 0.5 * OMEGA[0] / OMEGA[1], 0.7, 1.2], rel=1e-12)
    floored = make("steer", mapping="linear", omega_floor=10.0).plan(tokens())
    assert torch.equal(floored.weight, plan.weight)  # the floor belongs to the exponential mapping
    none = Tokens(**{**vars(tokens()), "advantage": torch.zeros(3, dtype=torch.float64)})
    assert make("steer", mapping="linear", lambda_min=0.8).plan(none).weight.tolist() == [1.0] * 3
    every = make("steer", mapping="linear", mask_clipped=False).plan(tokens())  # where no Ω is 0
    expected = [1.2 - 0.5 * (w - min(OMEGA)) / (max(OMEGA) - min(OMEGA)) for w in OMEGA]
    assert min(OMEGA) > 0
    assert every.weight.tolist() == pytest.approx(expected, rel=1e-12)


def test_binary_mapping_takes_the_top_fifth():
    t = sampled_tokens(2, 50)
    plan = make("steer", mapping="binary").plan(t)
    assert (plan.weight == 0.7).sum(-1).tolist() == [10, 10]
    assert (plan.weight == 1).sum(-1).tolist() == [40, 40]
    omega = make("steer", mapping="exponential").plan(t).weight  # falls with Ω
    lowest = omega.topk(10, largest=False).indices.sort().values
    assert torch.equal((plan.weight == 0.7).nonzero()[:, 1].reshape(2, 10), lowest)


def test_exact_estimator_uses_the_complete_flow():
    t = sampled_tokens(30)
    ratio = (t.logp - t.old_logp).exp()
    p = t.logp.exp()
    flow = (t.advantage * ratio * (p * (t.logp + t.entropy) - (t.s2l + t.entropy * t.s2))).abs()
    expected = (log(0.7) * flow / flow.max()).exp()
    weight = make("steer", estimator="exact", mask_clipped=False).plan(t).weight
    torch.testing.assert_close(weight, expected, rtol=1e-12, atol=0)
    with pytest.raises(ValueError, match=r"'steer' needs Tokens\.s2, Tokens\.s2l"):
        make("steer", estimator="exact").plan(tokens())


def test_which_entropy_is_asked_for():
    none = {"entropy", "old_entropy"}
    assert make("steer").needs & none == {"entropy"}
    assert make("steer", "released").needs & none == {"old_entropy"}
    assert make("steer", "released", estimator="exact").needs & none == {"entropy"}


def test_a_token_without_probability_weighs_one_and_counts_for_nothing():
    t = tokens()
    logp = torch.tensor([-torch.inf, *t.logp[1:].tolist()], dtype=torch.float64)
    old_logp = torch.tensor([-torch.inf, *t.old_logp[1:].tolist()], dtype=torch.float64)
    for changes in ({}, {"old_logp": old_logp}, {"advantage": column([0.0, *A[1:]])}):
        plan = make("steer").plan(Tokens(**{**vars(t), "logp": logp, **changes}))
        assert plan.weight.tolist() == pytest.approx([1, 0.7, 1], rel=1e-12)


def test_no_change_at_all_means_weight_one():
    t = Tokens(**{**vars(tokens()), "advantage": torch.zeros(3, dtype=torch.float64)})
    assert make("steer").plan(t).weight.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mapping": "cubic"}, "mapping must be one of exponential, linear, binary"),
        ({"estimator": "true"}, "estimator must be one of paper, exact"),
        ({"lambda_min": 0.0}, "lambda_min must be positive"),
        ({"lambda_min": 1.01}, "lambda_min must not be above 1"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        make("steer", **settings)


def test_the_released_preset_clips_as_the_authors_run_it():
    """ε .2 / .28 and c = 10, unless the chain names or implies another surrogate."""
    surrogate = make("steer", "released").surrogate
    assert (surrogate.name, surrogate.eps_low, surrogate.eps_high, surrogate.dual_clip) == (
        "clip_higher",
        0.2,
        0.28,
        10,
    )
    assert make("steer").surrogate.name == "ppo"
    assert make("ppo+steer", "released").surrogate.eps_high == 0.2
    assert make("clip_cov+steer", "released").surrogate.eps_high == 1.0
