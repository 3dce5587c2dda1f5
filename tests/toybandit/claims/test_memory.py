"""Remembered measurements: made once, and set aside for mutations."""

import ast
from pathlib import Path

import pytest

import toybandit.claims
from toybandit.claims.memory import forgotten, remember

calls = []


@remember
def doubled(x, *, plus=0):
    """Return 2x + plus."""
    calls.append(x)
    return 2 * x + plus


@pytest.fixture(autouse=True)
def fresh():
    with forgotten():
        calls.clear()
        yield


def test_each_result_is_computed_once():
    assert [doubled(1), doubled(1), doubled(1, plus=1), doubled(2)] == [2, 2, 3, 4]
    assert calls == [1, 1, 2]
    assert doubled.__doc__ == "Return 2x + plus."


def test_results_are_set_aside_and_restored():
    doubled(1)
    with forgotten():
        doubled(1)
        doubled(5)
    doubled(1)
    assert calls == [1, 1, 5]
    doubled(5)
    assert calls == [1, 1, 5, 5]


def test_results_are_restored_after_an_error():
    doubled(1)
    with pytest.raises(RuntimeError), forgotten():
        raise RuntimeError
    doubled(1)
    assert calls == [1]


def test_claims_remember_nothing_that_a_mutation_could_not_set_aside():
    """Caches of functools would give results without the mutation to the verdict with it, and the reverse."""
    for path in Path(toybandit.claims.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "functools":
                assert not {alias.name for alias in node.names} & {"cache", "lru_cache", "cached_property"}, path.name
