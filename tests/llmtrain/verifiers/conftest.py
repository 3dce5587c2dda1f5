"""The checks of this folder, importable by worker processes."""

import sys
from pathlib import Path

import pytest

from llmtrain.verifiers import get_verifier


@pytest.fixture(scope="session", autouse=True)
def checks_are_importable():
    sys.path.append(str(Path(__file__).parent))
    yield
    sys.path.remove(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def math():
    with get_verifier("math", workers=1, timeout=1.0) as verifier:
        yield verifier
