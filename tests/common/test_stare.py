"""stare against weights and schedules worked out by hand."""

from math import nan

import pytest
import torch

from entrostat import StepStats, Tokens, make

P = [0.9, 0.1, 0.5, 0.02, 0.3, 0.8]
ADVANTAGE = [1.0, 1.0, -1.0, -1.0, 0.0, 1.0]


def tokens(p=P, advantage=ADVANTAGE) -> Tokens:
    logp = torch.tensor(p, dtype=torch.float64).log()
    return Tokens(logp=logp, old_logp=logp, advantage=torch.tensor(advantage, dtype=torch.float64))


def weights(entropy: float, some: Tokens | None = None, **settings) -> list[float]:
    controller = make("stare", **settings)
    controller.observe(StepStats(entropy=entropy))
    return controller.plan(some or tokens()).weight.tolist()


def state(controller) -> tuple[float, ...]:
    """W and M."""
    return tuple(float(controller.metrics()[f"stare/{sign}_weight"]) for sign in ("positive", "negative"))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [1, 1.1, 1, 1, 1, 1]),  # a tenth of three is one token
        ({"share": 1 / 3}, [1, 1.1, 1, 1, 1, 1]),
        ({"share": 0.34}, [1, 1.1, 1, 1, 1, 1.1]),
        ({"share": 1.0, "positive": 1.5}, [1.5, 1.5, 1, 1, 1, 1.5]),
        ({"share": 0.0, "both_signs": True}, [1, 1, 1, 1, 1, 1]),
        ({"both_signs": True}, [1, 1.1, 1, 0.9, 1, 1]),
        ({"both_signs": True, "share": 1.0, "negative": 0.5}, [1.1, 1.1, 0.5, 0.5, 1, 1.1]),
    ],
)
def test_weights_by_hand(settings, expected):
    assert weights(0.2, **settings) == pytest.approx(expected)


@pytest.mark.parametrize(("entropy", "weighted"), [(0.29, True), (0.3, False), (0.31, False), (nan, True)])
def test_only_below_the_target(entropy, weighted):
    assert (weights(entropy) != [1.0] * 6) == weighted


def test_it_is_on_until_told_otherwise_and_stays_as_it_was_where_nothing_is_measured():
    controller = make("stare")
    assert controller.plan(tokens()).weight.max() == 1.1
    for entropy in (0.5, nan):
        controller.observe(StepStats(entropy=entropy))
        assert controller.plan(tokens()).weight.max() == 1.0


def test_a_share_is_rounded_up_as_a_whole_number_of_tokens():
    """.1 · 30 is 3.0000000000000004."""
    for successes, expected in ((1, 1), (10, 1), (11, 2), (30, 3), (31, 4)):
        some = tokens([0.5 - i / 100 for i in range(successes)] + [0.01], [1.0] * successes + [-1.0])
        assert sum(w > 1 for w in weights(0.1, some)) == expected


def test_the_schedule_by_hand():
    controller = make("stare", delta=0.01, both_signs=True)
    read = ((0.1, 1.11, 0.89), (0.3, 1.11, 0.89), (nan, 1.11, 0.89), (0.4, 1.10, 0.90), (0.2, 1.11, 0.89))
    for entropy, w, m in read:
        controller.observe(StepStats(entropy=entropy))
        assert state(controller) == pytest.approx((w, m))
    for _ in range(60):
        controller.observe(StepStats(entropy=0.0))
    assert state(controller) == (1.5, 0.5)
    for _ in range(60):
        controller.observe(StepStats(entropy=1.0))
    assert state(controller) == (1.0, 1.0)


def test_what_is_logged():
    controller = make("stare", both_signs=True, share=0.5)
    controller.observe(StepStats(entropy=0.1))
    info = controller.plan(tokens()).info
    assert {key: float(x) for key, x in info.items()} == {"stare/positive": 2 / 6, "stare/negative": 1 / 6}
    assert set(controller.metrics()) == {"stare/enabled", "stare/positive_weight", "stare/negative_weight"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"positive": 2.0}, "positive must not exceed positive_max"),
        ({"negative": 0.4}, "negative must not be below negative_min"),
        ({"positive": 0.9}, "positive"),
        ({"share": 1.1}, "share"),
    ],
)
def test_what_is_refused(settings, said):
    with pytest.raises(ValueError, match=f"stare: {said}"):
        make("stare", **settings)
