import pytest

from llmtrain.verifiers import get_verifier


@pytest.fixture(scope="session")
def math():
    with get_verifier("math", workers=1, timeout=1.0) as verifier:
        yield verifier
