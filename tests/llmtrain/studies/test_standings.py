"""Standings of runs: means, noise of a mean, and the part explained by entropy alone."""

import numpy as np
import pytest

from entrostat.about.lineup import Entry
from llmtrain.studies.comparison import Run
from llmtrain.studies.standings import Standing, by_entropy, of_another_start, standard_error, standing

NAMES = [f"c{i}" for i in range(12)]


def run(entropies, reward=0.5, target=None, passed=0.7, norm=1.0):
    metrics = [{"step": i, "entropy": h, "reward": reward, "grad_norm": norm} for i, h in enumerate(entropies)]
    metrics[-1] |= {"eval/avg@2": 0.4, "eval/pass@2": passed}
    return Run("run", {"target": target, "eval": {"k": 2}}, metrics)


def ended(name, same_as="", **values):
    return Standing(entry=Entry(name), same_as=same_as, values={key: np.array(x) for key, x in values.items()})


def test_means_are_over_the_last_third_and_over_seeds():
    found = standing(
        Entry("entropic"), [run([9, 9, h], 0.25, target=0.5, passed=p) for h, p in ((0.4, 0.6), (0.6, 0.8))], {}
    )
    assert found.mean("entropy") == 0.5
    assert found.mean("reward") == 0.25
    assert found.mean("avg@2") == 0.4
    assert found.mean("pass@2") == pytest.approx(0.7)
    assert found.mean("target_error") == pytest.approx(0.1)
    assert np.isnan(found.mean("pass@8"))
    assert found.target == 0.5
    assert found.same_as == ""


def test_twins_were_trained_alike_in_every_step_of_every_run():
    ppo = {"ppo": [run([9, 9, 0.5])] * 2}
    assert standing(Entry("steer"), [run([9, 9, 0.5], passed=0.1)] * 2, ppo).same_as == "ppo"
    for other in (run([9, 8, 0.5]), run([9, 9, 0.5], reward=0.6), run([9, 9, 0.5], norm=2.0)):
        assert standing(Entry("steer"), [run([9, 9, 0.5]), other], ppo).same_as == ""


def began(name, *entropies):
    """An entry whose policy had these entropies before the first step of each seed."""
    runs = [Run(name, {"target": None, "eval": {"k": 2}}, [{"step": 0, "eval/entropy": h}]) for h in entropies]
    return standing(Entry(name), runs, {})


def test_another_start_model_is_told_by_its_entropy_before_the_first_step():
    """The logs of two processors: .522465 and .520796 nats; 5e-6 is the rounding of one model's pass."""
    alike = [
        began("ppo", 0.522465, 0.516879),
        began("steer", 0.522465 + 5e-6, 0.516879),
        began("kl_ref", 0.522465, 0.516879),
    ]
    assert of_another_start(alike) == set()
    assert of_another_start([*alike, began("siren", 0.522465)]) == set()  # by the seeds that both have
    assert of_another_start([*alike, began("siren", 0.516879)]) == {"siren"}
    other, one_seed = began("thermostat", 0.520796, 0.522759), began("aem", 0.522465, 0.522759)
    assert of_another_start([*alike, other, one_seed]) == {"thermostat", "aem"}
    unknown = standing(Entry("epo"), [run([9, 9, 0.5])], {})
    assert of_another_start([*alike, unknown]) == set()
    assert of_another_start([unknown]) == of_another_start([]) == set()
    late = Run("late", {}, [{"step": 80, "eval/entropy": 0.2}])
    assert np.isnan(late.start)


def test_who_has_no_target_has_no_error():
    found = standing(Entry("steer"), [run([9, 9, 0.5], target=0.4)], {"ppo": [run([9, 8, 0.5])]})
    assert found.target is None
    assert "target_error" not in found.values
    assert found.same_as == ""


def test_the_standard_error_pools_the_variance_between_seeds():
    """Variances 1 and 3 over two seeds each: √(2/2). Entries with the same training count once."""
    one, three = ended("a", x=[0.0, 2**0.5]), ended("b", x=[0.0, 6**0.5])
    assert standard_error([one, three], "x") == pytest.approx(1)
    assert standard_error([one, three, ended("c", same_as="b", x=[0.0, 6**0.5])], "x") == pytest.approx(1)
    assert np.isnan(standard_error([ended("a", x=[1.0])], "x"))
    assert np.isnan(standard_error([one], "y"))


def noisy(rng, off=0.0):
    """Return entries on a parabola in log entropy, with noise of deviation .01 per seed, except the last entry."""
    entropies = np.linspace(0.1, 1.2, len(NAMES))
    rewards = 0.3 - 0.1 * np.log(entropies / 0.6) ** 2
    rewards[-1] += off
    return [
        ended(name, entropy=np.full(4, h), reward=r + rng.normal(0, 0.01, 4))
        for name, h, r in zip(NAMES, entropies, rewards, strict=True)
    ]


def test_a_parabola_in_the_entropy_is_found():
    entries = noisy(np.random.default_rng(0))
    found = by_entropy(entries, "reward")
    assert found.coefficients == pytest.approx([-0.1, 0.2 * np.log(0.6), 0.3 - 0.1 * np.log(0.6) ** 2], abs=0.02)
    assert found.explained > 0.9
    assert found.apart == {}
    assert found.at(np.array([0.6])) == pytest.approx([0.3], abs=0.01)


def test_noise_is_told_from_what_the_entropy_does_not_explain():
    """Without other effects, noise has on average a share of 1 in the residual variance, over many draws."""
    rng = np.random.default_rng(1)
    shares = [1 / by_entropy(noisy(rng), "reward").noise for _ in range(200)]
    assert np.mean(shares) == pytest.approx(1, abs=0.15)
    found = by_entropy(noisy(rng, off=-0.2), "reward")
    assert next(iter(found.apart)) == NAMES[-1]
    assert found.apart[NAMES[-1]] < -10
    assert found.noise < 0.2


def test_an_entry_far_from_all_others_does_not_bend_the_parabola():
    """Otherwise the parabola would pass through the entry, whatever its reward, and explain nothing else."""
    rng = np.random.default_rng(3)
    entries = [
        ended(name, entropy=np.full(4, 0.2 + i / 100), reward=rng.normal(0.5, 0.01, 4)) for i, name in enumerate(NAMES)
    ]
    without = by_entropy(entries, "reward")
    assert without.explained < 0.3
    assert without.left_out == ()
    found = by_entropy([*entries, ended("far", entropy=np.full(4, 2.0), reward=np.zeros(4))], "reward")
    assert found.left_out == ("far",)
    assert found.coefficients == pytest.approx(without.coefficients)
    assert found.explained == pytest.approx(without.explained)


def test_how_far_an_entry_is_from_the_parabola_through_the_others():
    """The unit is the standard error of its mean minus the prediction, which has an error too."""
    entries = noisy(np.random.default_rng(1), off=-0.2)
    found = by_entropy(entries, "reward")
    *x, last = np.vander(np.log([s.mean("entropy") for s in entries]), 3)
    *y, reward = (s.mean("reward") for s in entries)
    error = reward - last @ np.linalg.lstsq(np.array(x), np.array(y))[0]
    of_prediction = last @ np.linalg.inv(np.transpose(x) @ x) @ last
    noise = standard_error(entries, "reward")
    assert found.apart[NAMES[-1]] == pytest.approx(error / (noise * np.sqrt(1 + of_prediction)))
    values, rest = np.array([*y, reward]), np.array([*y, reward]) - found.at(np.exp([*np.transpose(x)[1], last[1]]))
    away = values - [np.delete(values, i).mean() for i in range(12)]
    powers = np.array([*x, last])
    ahead = [
        values[i] - powers[i] @ np.linalg.lstsq(np.delete(powers, i, 0), np.delete(values, i))[0] for i in range(12)
    ]
    assert found.explained == pytest.approx(1 - np.square(ahead).sum() / np.square(away).sum())
    assert found.noise == pytest.approx(noise**2 / ((rest**2).sum() / (12 - 3)))


def test_few_entries_or_seeds_say_less():
    entries = noisy(np.random.default_rng(2))
    assert by_entropy(entries[:9], "reward") is None
    assert by_entropy([ended(s.entry.name, same_as="c0", **s.values) for s in entries], "reward") is None
    alone = [ended(s.entry.name, **{key: x[:1] for key, x in s.values.items()}) for s in entries]
    found = by_entropy(alone, "reward")
    assert np.isnan(found.noise)
    assert found.apart == {}
