"""Results of rules in environments, and the words for them."""

from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from entrostat.about.lineup import Entry, asked
from toybandit import Config, simulate
from toybandit.forecast.fit import Fit
from toybandit.forecast.observed import Observed
from toybandit.forecast.outlook import Outlook, look_ahead, of_entry
from toybandit.forecast.words import difference, notes, table, told

HERE = Config(env="features", rollouts=24, pool=64, held_out=16)


def test_results_are_those_of_the_simulation() -> None:
    (entry,) = asked(["entropy_bonus coef=0.05"])
    other = Config(env="features", rollouts=24, pool=64, held_out=16, lr=0.05)
    ahead = look_ahead(entry, [Fit(HERE, 1.0), Fit(other, 2.0)], range(3), 4)
    run = simulate(of_entry(entry, other, None), range(3))
    assert run.held_out is not None
    assert run.config.controller_args == {"coef": 0.05}
    np.testing.assert_allclose(ahead.passed[1], run.held_out.pass_at(4)[:, -3:].mean(1))
    np.testing.assert_allclose(ahead.reward[1], run.held_out.pass_at(1)[:, -3:].mean(1))
    np.testing.assert_allclose(ahead.entropy[1], run.entropy_held)
    assert ahead.reward.shape == (2, 3)


def test_targets_are_the_entry_s_own_or_the_given_one() -> None:
    own, without, none = *asked(["thermostat target=0.2", "adaptive_entropy_trl"]), Entry("ppo")
    assert of_entry(own, HERE, 0.45).target is None
    assert of_entry(own, HERE, 0.45).controller_args == {"target": 0.2}
    assert of_entry(without, HERE, 0.45).target == 0.45
    assert of_entry(none, HERE, 0.45).target is None


def test_differences_by_hand() -> None:
    here, there = np.array([[0.3, 0.5], [0.5, 0.7]]), np.array([[0.2, 0.4], [0.3, 0.5]])
    value, error = difference(here, there)  # .1 in one environment and .2 in the other, whatever the seed
    assert value == pytest.approx(0.15)
    assert error == pytest.approx(0.05)
    one_sided = difference(np.array([[0.3, 0.5], [0.3, 0.5]]), np.array([[0.3, 0.3], [0.3, 0.3]]))
    assert one_sided == pytest.approx((0.1, 0.1 / np.sqrt(2)))
    assert told(0.15, 0.05) == "+0.150 ±0.100*"
    assert told(0.15, 0.08) == "+0.150 ±0.160 "
    assert told(0.15, 0.05, like=False) == "+0.150 ±0.100 "


def test_the_table_has_the_highest_pass_at_k_first() -> None:
    def outlook(name: str, passed: float) -> Outlook:
        return Outlook(Entry(name), np.full((2, 2), 0.3), np.full((2, 2), passed), np.full((2, 2), 0.1))

    console = Console(width=120, record=True, file=None)
    with console.capture() as said:
        console.print(table([outlook("ppo", 0.4), outlook("kl_ref", 0.6), outlook("edge", 0.2)], 8))
    text = said.get()
    assert text.index("kl_ref") < text.index("grpo") < text.index("edge")
    assert "+0.200" in text
    assert "-0.200" in text


def test_notes_warn_of_environments_that_are_unlike_the_run() -> None:
    nothing = np.empty(0)
    seen = Observed(
        steps=10, total=20, entropy=np.full(8, 0.5), reward=np.array([0.1, 0.2]), evaluated=nothing, mean=nothing,
        k=8, passed=nothing,
    )  # fmt: skip
    like, unlike = notes(seen, [Fit(HERE, 5.0)]), notes(seen, [Fit(HERE, 50.0)])
    assert not any("no environment" in line for line in like)
    assert any("no environment" in line for line in unlike)
    assert any("without pass@k" in line for line in like)
    filtered = replace(seen, reward=np.full(2, np.nan), passed=np.array([0.5]), doubts=("warning: kept",))
    told = notes(filtered, [Fit(HERE, 5.0)])
    assert "warning: kept" in told
    assert not any("nan" in line or "without pass@k" in line for line in told)
