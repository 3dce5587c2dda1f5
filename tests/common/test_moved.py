"""Old addresses of modules lead to the same modules."""

import subprocess
import sys
from importlib import import_module

import pytest

from entrostat.moved import HOME


@pytest.mark.parametrize("name", HOME)
def test_a_module_is_found_at_its_old_address(name):
    with pytest.warns(DeprecationWarning, match=rf"^entrostat\.{name} is entrostat\.{HOME[name]} now$"):
        old = import_module(f"entrostat.{name}")
    sys.modules.pop(f"entrostat.{name}")
    new = import_module(f"entrostat.{HOME[name]}")
    assert old is new
    assert new.__name__ == new.__spec__.name == f"entrostat.{HOME[name]}"


def test_modules_below_an_old_address_are_not_loaded_twice():
    code = """
import entrostat.foreign.foreign_runs as old
from entrostat.logs.foreign import foreign_runs as new
import entrostat as es
from entrostat.controller import as_reading, as_state, column
from entrostat.composition import CompositionWarning
assert old is new
assert CompositionWarning is es.CompositionWarning
assert (column, as_reading) == (es.column, es.reading)
assert es.laws.fit and es.pi_control.stable
import entrostat.laws
assert entrostat.laws is es.laws
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_never_was_is_no_module():
    with pytest.raises(ModuleNotFoundError):
        import_module("entrostat.nothing")
