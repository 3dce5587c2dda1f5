import pytest

from llmtrain.verifiers import get_verifier


@pytest.fixture(scope="session")
def math():
    with get_verifier("math", workers=1, timeout=1.0) as verifier:
        yield verifier


@pytest.fixture(scope="session")
def python():
    with get_verifier("python", workers=1, timeout=20.0) as verifier:
        yield verifier
