"""What importing pulls in: entrostat nothing heavy, configurations not even torch."""

import subprocess
import sys

import pytest

import entrostat

HEAVY = ("transformers", "ray", "deepspeed", "vllm", "streamlit", "tyro", "matplotlib")


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_entrostat_is_light():
    assert not modules_after("import entrostat.commandline, entrostat.runlog, entrostat.foreign.foreign_runs") & {
        "torch",
        "pyarrow",
        "pydantic",
        *HEAVY,
    }


def test_what_it_names_is_there():
    code = "import entrostat; print(*(f'{name}={getattr(entrostat, name).__name__}' for name in entrostat.__all__))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = dict(pair.split("=") for pair in done.stdout.split())
    assert {name: home.rpartition(".")[2] for name, home in found.items()} == {name: name for name in entrostat.__all__}


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'entrostat' has no attribute 'mak'"):
        entrostat.mak  # noqa: B018


@pytest.mark.parametrize("module", ["llmtrain.settings.config", "llmtrain.tasks", "toybandit.config"])
def test_configurations_need_no_torch(module):
    assert not modules_after(f"import {module}") & {"torch", *HEAVY}


def test_a_configuration_is_read_without_pydantic():
    assert "pydantic" not in modules_after("import llmtrain.settings.config")


def test_modules_are_there_and_names_are_listed():
    code = "import entrostat; print(entrostat.registry.__name__, entrostat.surrogates.__name__, *dir(entrostat))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    registry, surrogates, *listed = done.stdout.split()
    assert (registry, surrogates) == ("entrostat.registry", "entrostat.surrogates")
    assert set(listed) >= set(entrostat.__all__)


def test_a_name_that_is_taken_twice_is_refused_with_both_places():
    """Also when it is taken before ours are imported."""
    code = (
        "from entrostat.registry import register; register('steer')(type('Mine', (), {})); from entrostat import make"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    twice = "ValueError: controller 'steer' is registered twice, in __main__ and in entrostat.controllers.steer\n"
    assert done.stderr.endswith(twice)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["registry", "by_name", "description"])
def test_every_controller_is_registered(module):
    code = f"from entrostat.{module} import *; import entrostat; print(*entrostat.list_controllers())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == entrostat.list_controllers()
