"""Instruments of experiments: they touch what they say, see what there is, and leave the registry as it was."""

from threading import Event, Thread

import pytest
import torch

from entrostat import LocalReduce, Tokens, list_controllers, make
from entrostat.controllers.quadrant_mask import QuadrantMask
from toybandit import Config, simulate
from toybandit.instruments import at_hand, binned, by_key, probe, weights


def test_a_region_draws_by_its_own_name():
    tokens = Tokens(logp=torch.full((4000,), -0.1), old_logp=None, advantage=torch.ones(4000))
    rows = {}
    for name in ("region", "intervention", "region"):
        with at_hand(**{name: QuadrantMask}):
            rows.setdefault(name, []).append(make(f"reinforce+{name}", share=0.25).plan(tokens, LocalReduce()).weight)
    same, again = rows["region"]
    assert torch.equal(same, again)
    assert not torch.equal(same, *rows["intervention"])
    assert make("quadrant_mask").parts[0].name == "quadrant_mask"


def test_settings_side_by_side():
    rows = [weights("exploration", 2.0) | {"share": 0.1}, weights("correction", 0.0) | {"share": 0.2}]
    assert by_key(rows) == {
        "exploitation": [1, 1],
        "exploration": [2, 1],
        "suppression": [1, 1],
        "correction": [1, 0],
        "share": [0.1, 0.2],
    }


def test_the_registry_is_left_as_it_was():
    before = list_controllers()
    with at_hand(region=QuadrantMask):
        assert "region" in list_controllers()
    assert list_controllers() == before
    with at_hand(region=QuadrantMask), pytest.raises(ValueError, match="unknown"):
        make("no such controller")
    assert list_controllers() == before


def test_a_probe_sees_every_update_and_changes_nothing():
    def look(plan, context):
        return {"seen/tokens": context.tokens.advantage.abs().gt(-1).sum(-1)}

    config = Config(states=3, rollouts=4)
    with at_hand(probe=probe(look, "logp")):
        watched = simulate(Config(controller="grpo+probe", states=3, rollouts=4), range(2))
    assert (watched.metrics["seen/tokens"] == 3 * 16).all()
    assert (watched.entropy == simulate(config, range(2)).entropy).all()


def test_binned_sums():
    values, bins = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[0, 2, 0]])
    assert binned(values, bins, 3).tolist() == [[5, 0, 2]]


def test_another_thread_waits_for_the_registry():
    started, lent = Event(), []

    def lend() -> None:
        started.set()
        with at_hand(region=QuadrantMask):
            lent.append(True)

    other = Thread(target=lend)
    with at_hand(region=QuadrantMask):
        other.start()
        assert started.wait(10)
        other.join(0.2)
        assert other.is_alive()
        assert lent == []
    other.join(10)
    assert lent == [True]


def test_a_name_that_is_taken_stays_with_its_owner():
    before = list_controllers()
    with (
        pytest.raises(ValueError, match="controller 'steer' is registered twice"),
        at_hand(region=QuadrantMask, steer=QuadrantMask),
    ):
        pass
    assert list_controllers() == before
    assert make("steer").parts[0].name == "steer"
