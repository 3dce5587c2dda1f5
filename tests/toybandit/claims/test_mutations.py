"""Mutations: exactly what they name is replaced, and put back."""

import math
from types import SimpleNamespace

import pytest
import torch

from entrostat import StepStats, make
from entrostat.controllers.entropic import Entropic
from toybandit.claims.memory import remember
from toybandit.claims.mutations import Mutation, Swap, always, constant, faults, negated, scaled


class Base:
    def size(self):
        return 1


class Derived(Base):
    pass


@remember
def root():
    return math.sqrt(4)


def test_an_attribute_of_a_module_by_name_and_its_remembered_results():
    assert root() == 2
    with Mutation("roots were negative", Swap("math", "sqrt", negated))():
        assert root() == -2
    assert root() == 2


def test_an_attribute_of_an_object_and_an_entry_of_a_mapping():
    thing, table = SimpleNamespace(x=1), {"a": 1, "b": 2}
    with Mutation("two", Swap(thing, "x", lambda x: x + 1), Swap(table, "b", always(None)))():
        assert (thing.x, table) == (2, {"a": 1, "b": None})
    assert (thing.x, table) == (1, {"a": 1, "b": 2})


def test_an_inherited_method_stays_the_base_class_s():
    with Swap(Derived, "size", constant(7))():
        assert (Derived().size(), Base().size()) == (7, 1)
    assert Derived().size() == 1
    assert "size" not in vars(Derived)


def test_put_back_after_an_error():
    thing = SimpleNamespace(x=1)
    with pytest.raises(RuntimeError), Swap(thing, "x", always(2))():
        raise RuntimeError
    assert thing.x == 1


@pytest.mark.parametrize("swap", [Swap("math", "no_such", negated), Swap({}, "none", negated)])
def test_what_is_not_there_cannot_be_replaced(swap):
    with pytest.raises((AttributeError, KeyError)), swap():
        pass


def test_a_method_that_reads_another_number():
    class Rule:
        width = 2.0

        def double(self, x):
            return 2 * self.width * x

    rule = Rule()
    with Swap(Rule, "double", scaled("width", -0.5))():
        assert rule.double(3) == -6
        assert rule.width == 2
    assert rule.double(3) == 12


def test_faults_of_a_controller():
    """Entropy .7 with target .6: α is .1·Kp, with the error of the other sign −.1·Kp; switched off, weights stay 1."""

    def alpha():
        controller = make("entropic", target=0.6, kp=2.0, ki=0.0)
        controller.observe(StepStats(entropy=torch.tensor(0.7)))
        return float(controller.metrics()["entropic/alpha"])

    sign, off = faults(Entropic)
    assert alpha() == pytest.approx(0.2)
    with sign():
        assert alpha() == pytest.approx(-0.2)
    with off():
        assert Entropic().transform("plan", None) == "plan"
