"""Numbers of a run's start from its log: windows by hand, steps and names, and logs that say too little."""

from contextlib import nullcontext

import numpy as np
import pytest

from toybandit import Config, simulate
from toybandit.forecast.observed import Observed, observe, thirds, together, windows


def steps(count: int = 16, **more: object) -> list[dict]:
    return [{"step": i, "entropy": 1 - i / count, "reward": i / count, **more} for i in range(count)]


def test_windows_and_thirds_by_hand() -> None:
    values = np.arange(6.0)
    assert windows(values, 3).tolist() == [0.5, 2.5, 4.5]
    assert windows(values, 6).tolist() == values.tolist()
    assert windows(np.array([1.0, 3.0]), 4).tolist() == [1, 1, 3, 3]
    assert thirds(values).tolist() == [0.5, 4.5]
    assert thirds(np.array([2.0])).tolist() == [2, 2]


def test_a_log_s_numbers() -> None:
    lines = steps()
    lines[0] |= {"eval/avg@4": 0.1, "eval/pass@4": 0.3}
    lines[8] |= {"eval/avg@4": 0.2, "eval/pass@4": 0.25}
    lines.append({"step": 16, "eval/avg@4": 0.15, "eval/pass@4": 0.2})
    seen = observe(lines, total=64)
    assert (seen.steps, seen.total, seen.k) == (16, 64, 4)
    np.testing.assert_allclose(seen.entropy, [1 - (i + 0.5) / 16 for i in range(0, 16, 2)])
    np.testing.assert_allclose(seen.evaluated, [0, 0.5, 1])
    np.testing.assert_allclose(seen.mean, [0.1, 0.2, 0.15])
    np.testing.assert_allclose(seen.passed, [0.3, 0.25, 0.2])


def test_first_steps_alone() -> None:
    seen = observe(steps(), first=8)
    assert (seen.steps, seen.total) == (8, 16)
    np.testing.assert_allclose(seen.entropy, [1 - i / 16 for i in range(8)])


def test_steps_from_one_and_gaps() -> None:
    lines = [{**line, "step": line["step"] + 1} for line in steps()]
    del lines[3]["entropy"]
    lines[4]["reward"] = None
    lines[6]["entropy"] = float("nan")
    seen = observe(lines)
    assert (seen.steps, seen.total) == (16, 16)
    assert np.isfinite(seen.numbers).all()


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (steps(7), "entropy at 7 of 7 steps"),
        ([{"step": 0, "ent/mean": 0.5, "reward": 0.1}, {"step": 1, "ent/mean": 0.4}], "--entropy, such as ent/mean$"),
        ([{**line, "step": line["step"] + 100} for line in steps()], "begins at step 100"),
        ([{**line, "entropy": 300.0} for line in steps()], "between 300 and 300: a forecast needs the mean entropy"),
        ([{**line, "entropy": -0.1} for line in steps()], "needs the mean entropy of a token"),
        (steps(**{"critic/score/min": -1.0}), "rewards are between -1 and 0.9"),
        (steps(**{"eval/avg@8": 40.0, "eval/pass@8": 60.0}), "eval/avg@8 are between 40 and 40"),
        (steps(**{"eval/avg@8": 0.4, "eval/pass@8": 0.3}), "eval/avg@8 is above eval/pass@8"),
        ([{"step": i, "entropy": 1.0} for i in range(9)], "--reward"),
        (steps(reward=1.5), "between 1.5 and 1.5"),
        (steps(reward=-0.1), "share of right answers"),
        ([{**line, "temperature": 1 + line["step"]} for line in steps()], "temperature"),
    ],
)
def test_logs_that_say_too_little(lines: list[dict], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        observe(lines)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_a_reward_of_several_functions_is_refused_whatever_their_weights(weight: float) -> None:
    """Also where one of them has no weight: it may be the one that judges answers, as in TRL issue 3018."""
    lines = [{**line, "rewards/accuracy/mean": line["reward"], "rewards/format/mean": 0.9} for line in steps()]
    for line in lines:
        line["reward"] = weight * line["reward"] + (1 - weight) * line["rewards/format/mean"]
    with pytest.raises(ValueError, match="made of rewards/accuracy/mean, rewards/format/mean: "):
        observe(lines)


@pytest.mark.parametrize(("weight", "message"), [(1.0, None), (0.5, "made of rewards/accuracy/mean: ")])
def test_a_single_function_must_be_the_reward(weight: float, message: str | None) -> None:
    lines = [{**line, "reward": weight * line["reward"], "rewards/accuracy/mean": line["reward"]} for line in steps()]
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        observe(lines)


def test_beside_a_named_reward_others_say_nothing_about_it() -> None:
    """Scores of -1 and 1, as verl logs them beside the accuracy, and a sum of functions with its deviation."""
    beside = {"rewards/accuracy": 0.5, "rewards/format": 1.0, "critic/score/min": -1.0, "reward/std": 0.9}
    assert observe(steps(**beside), named=True).reward == pytest.approx(observe(steps()).reward)
    with pytest.raises(ValueError, match=r"rewards are between 1\.5 and 1\.5"):
        observe(steps(reward=1.5), named=True)


def test_the_largest_deviation_is_that_of_a_right_and_a_wrong_answer() -> None:
    observe(steps(**{"reward/std": float(np.std([0, 1], ddof=1))}))
    with pytest.raises(ValueError, match=r"reward/std is up to 0\.72"):
        observe(steps(**{"reward/std": 0.72}))


@pytest.mark.parametrize("name", ["thermostat/target", "actor/entropic/alpha", "clip_cov/dropped", "entropy_coef"])
def test_a_run_under_a_controller_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"the log has {name}, so the run was under a controller"):
        observe(steps(**{name: 0.01}))


def test_a_bonus_that_never_acts_is_no_controller() -> None:
    assert observe(steps(entropy_coef=0.0)).reward == pytest.approx(observe(steps()).reward)


@pytest.mark.parametrize(("name", "value"), [("train/num_gen_batches", 3), ("dynamic_filtering_pass_rate", 40.0)])
def test_the_reward_of_kept_groups_is_not_used(name: str, value: float) -> None:
    """verl's DAPO and OpenRLHF log the mean over the groups that they train on; verl's recipe pays -1 and 1."""
    lines = [{**line, "reward": 2 * line["reward"] - 1} for line in steps(**{name: value})]
    with pytest.raises(ValueError, match=f"{name} .* needs evaluations .*--reward"):
        observe(lines)
    lines[0] |= {"eval/avg@8": 0.1}
    seen = observe(lines)
    assert np.isnan(seen.reward).all()
    assert seen.mean == pytest.approx([0.1])
    assert any(name in doubt for doubt in seen.doubts)
    named = observe([{**line, **{name: value}} for line in steps()], named=True)  # somebody knows what it is
    assert named.reward == pytest.approx(observe(steps()).reward)
    assert not named.doubts


@pytest.mark.parametrize(("name", "value"), [("train/num_gen_batches", 1), ("dynamic_filtering_pass_rate", 100.0)])
def test_a_filter_that_drops_nothing(name: str, value: float) -> None:
    seen = observe(steps(**{name: value}))
    assert np.isfinite(seen.reward).all()
    assert not seen.doubts


def test_a_penalty_is_told() -> None:
    assert not observe(steps(**{"actor/kl_coef": 0.0})).doubts
    (told,) = together([observe(steps(**{"actor/kl_coef": 0.01}))] * 2).doubts
    assert "actor/kl_coef 0.01" in told


def test_avg_and_pass_of_other_k() -> None:
    """As where 16 responses are averaged and pass@8 is calculated from them."""
    lines = steps(**{"eval/avg@16": 0.4, "eval/pass@8": 0.6, "eval/pass@4": 0.5, "eval/avg@2": 0.3})
    seen = observe(lines)
    assert seen.k == 8
    np.testing.assert_allclose(seen.mean, 0.4)
    np.testing.assert_allclose(seen.passed, 0.6)


def test_what_the_reward_may_be_is_named() -> None:
    """A reward that adds a format's to the answer's, as in TRL issue 3452."""
    rewards = [{"rewards/hint_reward": 0.7 + i / 100, "rewards/format": 1.0, "reward_std": 0.5} for i in range(16)]
    lines = [
        {**line, "reward": 1 + more["rewards/hint_reward"], **more} for line, more in zip(steps(), rewards, strict=True)
    ]
    with pytest.raises(ValueError, match=r"--reward, such as rewards/hint_reward$"):
        observe(lines)


def test_the_evaluation_before_training_counts() -> None:
    """As verl's val_before_train at step 0, with training from step 1."""
    lines = [{**line, "step": line["step"] + 1} for line in steps()]
    before = [{"step": 0, "eval/avg@8": 0.2, "eval/pass@8": 0.6}]
    lines[7] |= {"eval/avg@8": 0.3, "eval/pass@8": 0.5}
    seen = observe([*before, *lines])
    assert seen.passed.tolist() == [0.6, 0.5]
    assert seen.evaluated.tolist() == [0, 7 / 16]


def test_evaluations_with_avg_at_k_alone() -> None:
    lines = steps()
    lines[0]["eval/avg@8"] = 0.2
    seen = observe(lines)
    assert seen.mean.tolist() == [0.2]
    assert np.isnan(seen.passed).all()


def test_lines_of_several_steps() -> None:
    """As TRL's with logging_steps 10: the line at 10 has the mean of the steps 1 to 10."""
    lines = [{**line, "step": 10 * (line["step"] + 1)} for line in steps()]
    seen = observe(lines, total=400)
    assert (seen.steps, seen.total) == (160, 400)
    np.testing.assert_allclose(observe(lines, first=80).entropy, [1 - i / 16 for i in range(8)])


def test_steps_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="--total 10 is less than the 16 steps"):
        observe(steps(), total=10)
    with pytest.raises(ValueError, match="entropy at 3 of 3 steps"):
        observe(steps(), first=3)


def test_runs_of_several_seeds_are_their_mean() -> None:
    one, other = observe(steps()), observe([{**line, "entropy": 0.5} for line in steps()])
    np.testing.assert_allclose(together([one, other]).entropy, (one.entropy + 0.5) / 2)
    with pytest.raises(ValueError, match="seed alone"):
        together([one, observe(steps(20))])


def test_a_simulation_is_at_no_distance_from_itself() -> None:
    run = simulate(Config(env="features", rollouts=40, pool=64, held_out=16), range(2))
    assert run.held_out is not None
    lines: list[dict] = [
        {"step": i, "entropy": run.entropy[:, i].mean(), "reward": run.reward[:, i].mean()} for i in range(40)
    ]
    lines.append({"step": 40})
    for i, step in enumerate(run.held_out.rollouts):
        lines[step] |= {
            "eval/avg@8": run.held_out.pass_at(1)[:, i].mean(),
            "eval/pass@8": run.held_out.pass_at(8)[:, i].mean(),
        }
    assert observe(lines).distance(run) == pytest.approx(0, abs=1e-20)
    assert observe(lines, first=20).distance(run) == pytest.approx(0, abs=1e-20)


def test_what_was_not_logged_does_not_count() -> None:
    run = simulate(Config(env="features", rollouts=16, pool=64, held_out=16), range(2))
    seen = observe(steps())
    wanted = np.concatenate([seen.entropy, seen.reward])
    got = np.concatenate([windows(run.entropy[:, :16].mean(0), 8), thirds(run.reward.mean(0))])
    assert isinstance(seen, Observed)
    assert seen.distance(run) == pytest.approx((((got - wanted) / 0.05) ** 2).sum())


def test_an_entropy_that_is_lost_and_a_reward_that_never_changes_are_told() -> None:
    lines = steps(32)
    lost = [line | {"entropy": float("nan")} if line["step"] >= 16 else line for line in lines]
    with pytest.raises(ValueError, match="the entropy is NaN from step 16 on: --first 16 reads the steps before"):
        observe(lost)
    assert observe(lost, first=16).steps == 16
    with pytest.raises(ValueError, match="the reward is 1 at every step: groups without a signal tell no rule apart"):
        observe([line | {"reward": 1.0} for line in lines])
