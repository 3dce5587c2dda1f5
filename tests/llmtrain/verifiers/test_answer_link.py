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


def test_the_tests_import_no_file_that_the_answer_names(pair, tmp_path, monkeypatch):
    tests, answer = pair
    (tmp_path / "answers_own.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    packed = {"module": "answers_own"}
    with pytest.raises(KeyError, match="answers_own"):
        Heap(tests).unpack(packed)
    assert "answers_own" not in sys.modules
    assert Heap(answer).unpack(packed).__name__ == "answers_own"
    assert Heap(tests).unpack(packed) is sys.modules.pop("answers_own")
    assert Heap(tests).unpack({"module": "math"}).__name__ == "math"


def test_a_module_that_the_tests_have_passes_both_ways(pair):
    tests, answer = pair
    answer.names["same"] = lambda module: module
    thread = threading.Thread(target=lambda: [answer.answer(answer.receive()) for _ in range(2)])
    thread.start()
    same = tests.ask("name", "same")
    assert tests.ask("call", same, sys) is sys
    thread.join()
