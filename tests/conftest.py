import os

os.environ["TRITON_INTERPRET"] = "1"  # the kernels' tests run on a CPU; read once, when triton is first imported
import sys

import pytest


@pytest.fixture
def own_controllers(monkeypatch):
    """Forget controllers that the test registers, and the modules they come from."""
    from entrostat import list_controllers
    from entrostat.registry import REGISTRY

    known = {*list_controllers(), *REGISTRY}
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(REGISTRY) - known:
        sys.modules.pop(REGISTRY.pop(name).__module__, None)
