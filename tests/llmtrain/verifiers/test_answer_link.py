"""The link between a program and its tests, in one process."""

import sys
import threading
from socket import socketpair

import pytest

from llmtrain.verifiers.answer_link import Heap, Link


@pytest.fixture
def pair():
    """The tests' side, which is guarded, and the answer's."""
    one, other = socketpair()
    return Link(one.detach(), {}, guarded=True), Link(other.detach(), {}, guarded=False)


def test_only_the_answer_imports_a_module_that_the_other_side_names(pair):
    tests, answer = pair
    packed = {"module": "colorsys"}
    sys.modules.pop("colorsys", None)
    with pytest.raises(KeyError, match="colorsys"):
        Heap(tests).unpack(packed)
    assert "colorsys" not in sys.modules
    assert Heap(answer).unpack(packed).__name__ == "colorsys"
    assert Heap(tests).unpack(packed) is sys.modules["colorsys"]


def test_a_module_that_the_tests_have_passes_both_ways(pair):
    tests, answer = pair
    answer.names["same"] = lambda module: module
    thread = threading.Thread(target=lambda: [answer.answer(answer.receive()) for _ in range(2)])
    thread.start()
    same = tests.ask("name", "same")
    assert tests.ask("call", same, sys) is sys
    thread.join()
