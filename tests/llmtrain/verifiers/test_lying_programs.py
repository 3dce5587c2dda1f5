"""Wrong programs that lie to their tests are not rewarded, in any of seven styles of tests (lying_programs.py)."""

import pytest
from tests.lying_programs import HONEST, PROGRAMS, texts

from llmtrain.verifiers import get_verifier

SAMPLE = 3
"""Programs of each style in the quick tests."""


@pytest.fixture(scope="module")
def python():
    with get_verifier("python", workers=2, timeout=4.0, memory_mib=512) as verifier:
        yield verifier


def rewarded(python, style, names):
    truth = texts(honest=False)[style]
    verdicts = python([PROGRAMS[style][name] for name in names], [truth] * len(names))
    return [name for name, verdict in zip(names, verdicts, strict=True) if verdict.correct]


def test_the_tests_accept_a_right_program(python):
    truths = texts(honest=True)
    verdicts = python([HONEST[style] for style in truths], list(truths.values()))
    assert all(verdict.correct for verdict in verdicts), [verdict.reason for verdict in verdicts]


@pytest.mark.parametrize("style", PROGRAMS)
def test_a_few_lying_programs_are_wrong(python, style):
    names = list(PROGRAMS[style])
    assert not rewarded(python, style, names[:: len(names) // SAMPLE])


@pytest.mark.slow
@pytest.mark.parametrize("style", PROGRAMS)
def test_a_quarter_of_the_lying_programs_are_wrong(python, style):
    assert not rewarded(python, style, list(PROGRAMS[style])[1::4])


@pytest.mark.long
@pytest.mark.parametrize("style", PROGRAMS)
def test_lying_programs_are_wrong(python, style):
    assert len(PROGRAMS[style]) >= 40
    assert not rewarded(python, style, list(PROGRAMS[style]))
