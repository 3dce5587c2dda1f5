"""Results of a controller with several hyperparameter values, interpolated at an entropy."""

from math import exp, log, sqrt

import numpy as np
import pytest

from entrostat.about.lineup import Entry
from llmtrain.studies.standings import Standing, standard_error
from llmtrain.studies.strengths import Reading, curves, readings, share_of_noise


def ended(args, entropy, reward, controller="kl_ref", off=0.0):
    """Return a standing of two seeds, `off` above and below the given values."""
    values = {"entropy": np.array([entropy, entropy]), "reward": np.array([reward - off, reward + off])}
    return Standing(entry=Entry(controller, args), values=values)


def read(standings, entropy):
    """Return the readings of the reward."""
    noise = {metric: standard_error(standings, metric) for metric in ("entropy", "reward")}
    return readings(curves(standings), entropy, ["reward"], noise)


def test_curves_differ_in_one_number():
    found = curves(
        [
            ended({"beta": 0.1}, 0.5, 0.2),
            ended({"beta": 0.02}, 0.3, 0.3),
            ended({}, 0.2, 0.3),
            ended({"target": 0.3, "mode": "both"}, 0.3, 0.3, "thermostat"),
            ended({"target": 0.4, "mode": "both"}, 0.4, 0.2, "thermostat"),
            ended({"target": 0.4, "mode": "bonus"}, 0.4, 0.2, "thermostat"),
            ended({"auto": True}, 0.4, 0.2, "entropic"),
            ended({"auto": False}, 0.1, 0.2, "entropic"),
        ]
    )
    assert [(curve.name, curve.hyperparameter) for curve in found] == [
        ("kl_ref", "beta"),
        ("thermostat (mode=both)", "target"),
    ]
    assert [s.mean("entropy") for s in found[0].standings] == [0.3, 0.5]


def test_a_curve_is_read_straight_in_log_entropy():
    found = [ended({"beta": b}, exp(h), r) for b, h, r in ((1, -3.0, 0.0), (2, -2.0, 0.1), (3, -1.0, 0.5))]
    (reading,) = read(found, exp(-1.25))
    assert reading.means["reward"] == pytest.approx(0.4)
    assert reading.value == pytest.approx(2.75)
    assert read(found, exp(-0.9)) == []
    assert read(found, exp(-3.0))[0].means["reward"] == pytest.approx(0)
    assert read(found, exp(-1.0))[0].means["reward"] == pytest.approx(0.5)


def test_the_least_values_that_have_it_between_them_are_taken():
    found = [ended({"beta": b}, h, r) for b, h, r in ((1, 0.1, 0.0), (2, 0.4, 0.0), (3, 0.1, 1.0))]
    assert read(found, 0.2)[0].value == pytest.approx(1.5)


def test_values_of_one_entropy_and_an_entropy_of_zero_have_nothing_between_them():
    alike = [ended({"beta": b}, h, r) for b, h, r in ((1, 0.2, 0.1), (2, 0.2, 0.3), (3, 0.4, 0.5))]
    (reading,) = read(alike, 0.2)
    assert (reading.value, reading.means["reward"]) == pytest.approx((2, 0.3))
    assert read([ended({"beta": b}, h, 0.1) for b, h in ((1, 0.0), (2, 0.4))], 0.2) == []


def test_the_highest_of_the_first_metric_comes_first():
    found = [
        ended({"k": b}, h, r, name)
        for name, r in (("clip_cov", 0.2), ("kl_ref", 0.4), ("steer", 0.3))
        for b, h in ((1, 0.2), (2, 0.4))
    ]
    assert [reading.curve.name for reading in read(found, 0.3)] == ["kl_ref", "steer", "clip_cov"]


def test_the_error_is_that_of_rewards_and_of_entropies():
    """Over many draws of two seeds at each end, readings vary as much as their errors say."""
    rng = np.random.default_rng(0)
    drawn, told = [], []
    for _ in range(400):
        pair = []
        for b, h, r in ((1, 0.2, 0.4), (2, 0.4, 0.1)):
            values = {"entropy": h + rng.normal(0, 0.01, 2), "reward": r + rng.normal(0, 0.02, 2)}
            pair.append(Standing(entry=Entry("kl_ref", {"beta": b}), values=values))
        (reading,) = read(pair, 0.25)
        drawn.append(reading.means["reward"])
        told.append(reading.errors["reward"] ** 2)
    share = log(1.25) / log(2)
    slope = 0.3 / log(2)
    exact = (1 - share) ** 2 * (0.02**2 + (slope * 0.05) ** 2) / 2 + share**2 * (0.02**2 + (slope * 0.025) ** 2) / 2
    assert np.std(drawn) == pytest.approx(sqrt(exact), rel=0.1)
    assert np.mean(told) == pytest.approx(exact, rel=0.1)


def test_noise_makes_up_all_where_nothing_else_differs():
    names = ("kl_ref", "entropy_bonus", "clip_cov")
    alike = [
        ended({"k": b}, h, 0.3 + i / 1e4, name, 0.1) for i, name in enumerate(names) for b, h in ((1, 0.2), (2, 0.4))
    ]
    apart = [ended({"k": b}, h, 0.3 * i, name, 0.1) for i, name in enumerate(names) for b, h in ((1, 0.2), (2, 0.4))]
    assert share_of_noise(read(alike, 0.2), "reward") == pytest.approx(1e6)
    assert share_of_noise(read(apart, 0.2), "reward") == pytest.approx(0.01 / 0.09)
    assert np.isnan(share_of_noise(read(apart[:4], 0.2), "reward"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("error", "share"), [(0.0, float("nan")), (0.1, float("inf"))])
def test_readings_that_do_not_vary(error, share):
    (curve,) = curves([ended({"beta": b}, 0.2, 0.3) for b in (1, 2)])
    found = [Reading(curve=curve, value=1.0, means={"reward": 0.0}, errors={"reward": error})] * 3
    assert share_of_noise(found, "reward") == pytest.approx(share, nan_ok=True)
