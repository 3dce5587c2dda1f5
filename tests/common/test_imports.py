"""What importing pulls in: entrostat nothing heavy, configurations not even torch."""

import subprocess
import sys

import pytest

HEAVY = ("transformers", "ray", "deepspeed", "vllm", "streamlit", "tyro", "matplotlib")


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_entrostat_is_light():
    assert not modules_after("import entrostat") & set(HEAVY)


@pytest.mark.parametrize("module", ["llmtrain.config", "llmtrain.tasks", "toybandit.config"])
def test_configurations_need_no_torch(module):
    assert not modules_after(f"import {module}") & {"torch", *HEAVY}
