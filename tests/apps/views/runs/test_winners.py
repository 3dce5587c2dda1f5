"""Ends of experiments by hand: seeds, questions, parts of a run, matched steps, and differences that cannot be told."""

from math import inf, isnan

import numpy as np
import pytest

from entrostat_app.views.runs import run_curves, runs, winners
from entrostat_app.views.runs.run_log import Log, Series
from entrostat_app.views.runs.winners import End, behind


def log(name, seed=0, every=1, **metrics):
    columns = {
        key.replace("__", "/").replace("_at_", "@"): Series(
            every * np.arange(len(values), dtype=float), np.array(values, dtype=float)[None]
        )
        for key, values in metrics.items()
    }
    return Log(name, {"seed": seed, "kind": name.partition("-")[0]}, columns, "done")


def told(logs, metric, weight=0.0):
    groups = run_curves.experiments(logs)
    lines = run_curves.curves(groups, metric, "step", weight)
    return groups, lines, winners.ends(groups, lines, metric)


def test_seeds_give_the_error():
    logs = [log(f"a-{seed}", seed, reward=[0, 0, value]) for seed, value in enumerate((0.1, 0.2, 0.3))]
    _, _, found = told(logs, "reward")
    end = found["a, 3 runs"]
    assert end == End(pytest.approx(0.2), pytest.approx(0.1 / 3**0.5), 2, "seeds", 3)
    assert winners.shown(end) == "0.2 ± 0.25"  # 4.302653 · .1/√3


def test_an_evaluation_of_one_run_has_its_logged_interval():
    given = {"eval__pass_at_8": [0.3, 0.5], "eval__pass_at_8__low": [0.2, 0.4], "eval__pass_at_8__high": [0.4, 0.6]}
    _, lines, found = told([log("a", every=80, **given)], "eval/pass@8")
    assert found["a"] == End(0.5, pytest.approx(0.1 / 1.959964), inf, "questions", 1)
    assert lines[0].low.tolist() == [0.2, 0.4]
    assert lines[0].high.tolist() == [0.4, 0.6]


def test_a_single_run_varies_like_its_parts():
    late = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], 4)
    _, _, found = told([log("a", reward=[*np.zeros(40), *late])], "reward")
    assert found["a"] == End(3.0, pytest.approx((2.5 / 5) ** 0.5), 4, "steps", 1)


def test_few_values_tell_no_error():
    _, _, found = told([log("a", reward=[0.1, 0.2]), log("b", reward=[0.3, 0.4])], "reward")
    assert isnan(found["a"].error)
    assert winners.sentence("Reward", found).startswith("Reward: highest in b, 0.4. With one seed and few values")


def test_runs_are_compared_where_the_shortest_ends():
    short = log("short", reward=[0.0] * 30)
    long = log("long", reward=[*[-1.0] * 30, *[5.0] * 60])
    groups, lines, found = told([short, long], "reward")
    assert winners.matched(lines) == 29
    assert found["long"].value == -1.0
    text = runs.notice({"reward": lines}, groups, "step")
    assert "Reward: highest in short" in text
    assert "at rollout step 29" in text


def test_smoothing_changes_no_number():
    rng = np.random.default_rng(0)
    logs = [log(name, reward=rng.random(60)) for name in ("a", "b", "c")]
    texts = set()
    for weight in (0.0, 0.6, 0.98):
        _, _, found = told(logs, "reward", weight)
        texts.add(winners.sentence("Reward", found))
    assert len(texts) == 1


def test_welch_by_hand():
    """Errors 3 and 4, each with 4 degrees of freedom: 625/(81 + 256)·4 = 7.418 of them, t = 2.338."""
    found = behind(End(10.0, 3.0, 4, "seeds", 5), End(0.0, 4.0, 4, "seeds", 5), 1)
    assert found.mean == -10.0
    assert found.half == pytest.approx(5 * 2.3379, rel=1e-4)
    assert not found.apart
    wider = behind(End(10.0, 3.0, 4, "seeds", 5), End(0.0, 4.0, 4, "seeds", 5), 3)
    assert wider.half > found.half


def test_the_sentence_names_who_is_apart_and_what_would_tell():
    found = {
        "a": End(0.5, 0.02, 4, "seeds", 5),
        "b": End(0.48, 0.02, 4, "seeds", 5),
        "c": End(0.1, 0.02, 4, "seeds", 5),
    }
    text = winners.sentence("Reward", found)
    half = behind(found["a"], found["b"], 2).half
    needed = int(np.ceil(5 * (half / 0.02) ** 2)) - 5
    assert text == (
        "Reward: highest in a, 0.5 ± 0.056. Lower: c 0.1 ± 0.056. Cannot be told apart from it: "
        f"b (-0.02 ± {half:.2g}; about {needed} more seeds each)."
    )


def test_equal_ends_need_no_number_of_seeds():
    found = {"a": End(0.5, 0.02, inf, "questions", 1), "b": End(0.5, 0.02, inf, "questions", 1)}
    assert winners.sentence("Reward", found).endswith("Cannot be told apart from it: b (+0 ± 0.055).")


def test_under_the_null_the_first_is_seldom_apart():
    """A true difference of 0 among two experiments of five seeds: at most one family in twenty is called apart."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        pair = {}
        for name in "ab":
            values = rng.standard_normal(5)
            pair[name] = End(float(values.mean()), float(values.std(ddof=1)) / 5**0.5, 4, "seeds", 5)
        wrong += "Lower" in winners.sentence("x", pair)
    assert 0.02 < wrong / 400 < 0.07
