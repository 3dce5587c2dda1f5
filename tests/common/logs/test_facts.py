"""Facts of a run, on logs whose collapse, law, control and pass@k are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from entrostat.logs.diagnosis.facts import COLLAPSED, FEWEST, WINDOW, measure

STEPS = np.arange(60)
FALLING = 0.1 + 1.4 * np.exp(-STEPS / 20)
DROP = np.where(STEPS < 37, 0.6, 0.1)
COURSES = arrays(np.float64, st.integers(FEWEST, 60), elements=st.floats(0.01, 3.0))


def lines(entropy, steps=None, **others):
    """Return metrics with these columns."""
    steps = range(len(entropy)) if steps is None else steps
    columns = {"entropy": entropy, **others}
    return [
        {"step": int(step), **{name: float(values[i]) for name, values in columns.items()}}
        for i, step in enumerate(steps)
    ]


def collapse(entropy, steps=None):
    return measure(lines(entropy, steps)).entropy.collapse


def test_a_drop_collapses_at_its_step():
    assert collapse(DROP) == 37
    assert collapse(np.where(STEPS < 37, 0.6, 0.6 * COLLAPSED + 0.01)) is None
    assert collapse(DROP[::-1]) is None
    found = measure(lines(DROP))
    assert "collapsed" in found.conditions
    assert (found.entropy.start, found.entropy.late) == pytest.approx((0.6, 0.1))


def test_spikes_neither_hide_a_collapse_nor_make_one():
    spiked = DROP.copy()
    spiked[[45, 50, 59]] = 5.0
    assert collapse(spiked) == 37
    held = np.full(60, 0.6)
    held[[0, 20, 40, 59]] = 0.01
    assert collapse(held) is None


def test_a_recovery_is_no_collapse_and_the_last_fall_counts():
    back = DROP.copy()
    back[45:50] = 0.6
    assert collapse(back) == 50


@settings(derandomize=True, deadline=None)
@given(COURSES, st.integers(1, 1000), st.integers(0, 1000))
def test_the_collapse_moves_with_the_steps(entropy, factor, first):
    at, scaled = collapse(entropy), collapse(entropy, first + factor * np.arange(len(entropy)))
    assert scaled == (None if at is None else first + factor * at)


@settings(derandomize=True, deadline=None)
@given(COURSES, st.floats(0.5, 2.0))
def test_the_unit_of_entropy_does_not_move_the_collapse(entropy, factor):
    entropy = 2.0 ** np.round(2 * np.log2(entropy))  # no ratio is at the boundary
    assert collapse(2.0 ** np.round(factor) * entropy) == collapse(entropy)


@settings(derandomize=True, deadline=None)
@given(COURSES, st.integers(1, 40))
def test_a_run_that_stays_where_it_ended_collapsed_at_the_same_step(entropy, more):
    end = np.median(entropy[-WINDOW:])
    assert collapse(np.append(entropy, np.full(more, end))) == collapse(entropy)


def test_what_cannot_be_told_about_the_entropy():
    short = measure(lines(DROP[: FEWEST - 1]))
    assert (short.entropy, short.entropies) == (None, FEWEST - 1)
    assert measure(lines(-DROP)).entropy is None
    none = measure([{"step": 0, "reward": 0.5}, {"step": 1, "entropy": None}])
    assert (none.entropy, none.entropies, none.no_law) == (None, 0, "no entropy is logged")
    assert measure([]).no_law == "no entropy and no reward is logged"
    assert {"collapsed", "not collapsed"}.isdisjoint(short.conditions | none.conditions)


@pytest.mark.parametrize(
    ("entropy", "said"),
    [
        (300 + DROP, "above 13 nats throughout"),
        (np.where(STEPS < 37, 60.0, 0.5), "above 13 nats in 37 of 60 steps"),
        (np.where(STEPS < 4, 60.0, 0.5), ""),
        (np.full(60, 12.6), ""),
        (-DROP, "negative throughout"),
        (
            np.where(STEPS < 59, -0.1, 0.1),
            "negative in 59 of 60 steps, which no entropy of tokens is: this looks like a sum",
        ),
        (np.where(STEPS < 4, -0.1, 0.1), ""),
        (np.where(STEPS < 40, -5e-4, 0.1), ""),
    ],
)
def test_an_entropy_that_is_no_mean_over_tokens(entropy, said):
    found = measure(lines(entropy)).impossible
    assert said in found
    assert bool(said) == bool(found)


def test_an_entropy_that_is_never_measured_names_another():
    """As of radixark/miles pull request 2556: train/entropy_loss is 0 unless it is asked for."""
    named = measure(lines(0 * DROP, **{"rollout/entropy": DROP})).impossible
    assert named.endswith("not measured. Name the column of another: --entropy rollout/entropy")
    assert not measure(lines(0 * DROP)).impossible
    assert not measure(lines(np.where(STEPS < 9, 0.0, 0.5), **{"rollout/entropy": DROP})).impossible


def test_a_negative_entropy_names_a_column_that_may_be_the_right_one():
    named = measure(lines(-DROP, **{"mine/entropy_mean": DROP, "entropy_coef": DROP})).impossible
    assert named.endswith("or name its column: --entropy mine/entropy_mean")
    assert measure(lines(-DROP)).impossible.endswith("or name its column: --entropy NAME")


def test_a_metric_that_ends_is_found_though_what_goes_on_is_not_read():
    metrics = lines(DROP, mine=DROP)
    ended = [{key: x for key, x in line.items() if key != "entropy" or line["step"] < 40} for line in metrics]
    assert measure(ended).happened.ended == {"entropy": 40}
    assert "not collapsed" not in measure(ended).conditions
    evaluated = lines(DROP) + [{"step": 60 + i, "eval/length": 1.0} for i in range(20)]
    assert measure(evaluated).happened.ended == {}


def test_a_known_law_predicts_the_reward():
    found = measure(lines(FALLING, reward=0.9 - 0.2 * np.exp(FALLING))).law
    assert (found.law.a, found.law.b) == pytest.approx((0.2, 0.9))
    assert found.predicts
    assert found.gain_interval[0] > 0


def test_a_reward_that_follows_the_step_is_not_predicted():
    """It rises while the entropy falls, so that a is positive; the step explains all of it."""
    found = measure(lines(FALLING, reward=0.2 + 0.01 * STEPS)).law
    assert found.law.a_interval[0] > 0
    assert found.gain < 0
    assert not found.predicts


def test_noise_is_not_predicted():
    rewards = np.random.default_rng(0).random((20, len(STEPS)))
    assert sum(measure(lines(FALLING, reward=reward)).law.predicts for reward in rewards) <= 1


def test_a_reward_that_never_moves():
    assert not measure(lines(FALLING, reward=np.full(60, 0.5))).law.predicts
    assert measure(lines(np.full(60, 0.5), reward=FALLING)).no_law.startswith("entropy does not vary")


def test_reward_and_entropy_are_joined_by_step():
    odd = [{"step": s, "entropy": h} for s, h in zip(STEPS.tolist(), FALLING.tolist(), strict=True)]
    odd += [{"step": s, "reward": 0.9 - 0.2 * np.exp(FALLING[s])} for s in range(0, 60, 2)]
    assert measure(odd).law.law.n == 30
    assert measure(odd).law.law.a == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("config", "target"),
    [
        ({"controller": "thermostat", "controller_args": {"target": 0.3}}, 0.3),
        ({"controller": "ppo+adaptive_entropy", "target": 0.3}, 0.3),
        ({"controller": "grpo", "target": 0.3}, None),
        ({"controller": "no_such_module:Thing", "target": 0.3}, 0.3),  # not imported
        ({"target_entropy": 0.3}, 0.3),
        ({}, None),
    ],
)
def test_the_target_of_a_controller_that_has_one(config, target):
    assert measure(lines(DROP), config).control.target == target
    assert measure(lines(DROP), config, target=0.2).control.target == 0.2


def test_a_target_that_moves_counts_with_its_end():
    moving = measure(lines(DROP, **{"thermostat/target": np.where(STEPS < 40, 0.5, 0.1)}))
    assert moving.control.target == pytest.approx(0.1)
    assert moving.control.held
    assert "target held" in moving.conditions


def test_grip_and_bounds():
    coefficient = np.minimum(0.001 * STEPS, 0.02)
    missed = measure(lines(DROP, **{"adaptive_entropy/coef": coefficient}), target=0.3)
    assert missed.control.error == pytest.approx(-0.2)
    assert missed.control.held is False
    assert missed.control.pinned == {"adaptive_entropy/coef": 0.02}
    moving = measure(lines(DROP, **{"adaptive_entropy/coef": 0.001 * STEPS, "mine": coefficient}), target=0.1)
    assert (moving.control.held, moving.control.pinned) == (True, {})
    assert list(moving.control.coefficients) == ["adaptive_entropy/coef"]


def test_clipping_by_its_last_third():
    share = np.where(STEPS < 40, 0.2, 0.0)
    found = measure(lines(DROP, clip_fraction=share, **{"mismatch/kl": 0.01 * STEPS}))
    assert (found.clipping["clip_fraction"].late, found.clipping["clip_fraction"].most) == (0.0, 0.2)
    assert found.clipping["mismatch/kl"].most == pytest.approx(0.59)
    assert "hardly clipped" in found.conditions
    above = measure(lines(DROP, clip_fraction=share, **{"clip/high": share + 0.1}))
    assert "clipped" in above.conditions
    assert {"clipped", "hardly clipped"}.isdisjoint(measure(lines(DROP)).conditions)


def evaluated(**ends):
    """Return metrics with a first and a last evaluation: value, low, high."""
    metrics = lines(DROP)
    for name, (first, last) in ends.items():
        for step, numbers in ((0, first), (59, last)):
            for end, number in zip(("", "/low", "/high"), numbers, strict=False):
                metrics[step][f"eval/{name}{end}"] = number
    return metrics


def test_breadth_needs_intervals_that_part():
    fell = measure(evaluated(**{"pass@8": ((0.6, 0.55, 0.65), (0.4, 0.35, 0.45)), "pass@2": ((0.1,), (0.9,))}))
    assert (fell.breadth.metric, fell.breadth.steps, fell.breadth.fell) == ("eval/pass@8", (0, 59), True)
    assert "pass@k fell" in fell.conditions
    assert not measure(evaluated(**{"pass@8": ((0.6, 0.55, 0.65), (0.5, 0.45, 0.56))})).breadth.fell
    unknown = measure(evaluated(**{"aime/pass@8": ((0.6,), (0.1,))})).breadth
    assert (unknown.metric, unknown.intervals, unknown.fell) == ("eval/aime/pass@8", None, False)
    assert measure(lines(DROP)).breadth is None
