"""Claims that others bring: by import path, by entry point, and what is refused."""

import re

import pytest

from entrostat.about.claims import FAILS, HOLDS, Claim, Claims, Finding

MINE = """
from shared_claims import CLAIMS, Fault
from entrostat.about.claims import Finding, HOLDS, FAILS


@CLAIMS.claim(
    "positive", words="w", threshold="above 0", null="0", mutations=(Fault("its sign were wrong"),), expected=HOLDS
)
def positive(x):
    "It is above 0."
    return Finding(str(x), {"x": x}, HOLDS if x > 0 else FAILS)


def plain(x):
    return x
"""
SHARED = """
from typing import NamedTuple
from entrostat.about.claims import Claim, Claims

CLAIMS = Claims(Claim, group="test.claims")


class Fault(NamedTuple):
    name: str

    def finding(self, check, subject):
        return check(-subject)
"""
DECLARED = """[test.claims]
positive-claim = mine_claims:positive
broken = mine_absent:positive
"""


@pytest.fixture
def claims(distribution):
    distribution("mine", DECLARED, mine_claims=MINE, shared_claims=SHARED)
    import shared_claims

    shared_claims.CLAIMS.clear()
    return shared_claims.CLAIMS


@pytest.mark.parametrize("name", ["mine_claims:positive", "positive-claim"])
def test_a_claim_elsewhere_is_measured_with_its_faults(claims, name):
    import importlib
    import sys

    sys.modules.pop("mine_claims", None)
    importlib.invalidate_caches()
    (found,) = claims.choose([name])
    record = found(2.0, power=True)
    assert (record.name, record.meaning, record.verdict) == ("positive", "It is above 0.", HOLDS)
    assert record.mutated == {"its sign were wrong": FAILS}
    assert record.unnoticed == ()
    assert found(-1.0).as_expected is False
    assert claims.choose(["positive"]) == [found]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine_claims:plain", "claim 'mine_claims:plain' is a function, not a function under @claim"),
        ("mine_claims:absent", "claim 'mine_claims:absent' cannot be imported"),
        ("broken", "claim 'broken' of the distribution mine cannot be imported"),
        ("positiv", "unknown claim 'positiv'"),
    ],
)
def test_what_is_no_claim_is_named(claims, name, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        claims.choose([name])


def test_problems_of_plug_ins_are_lines(claims):
    assert [line.partition(":")[0] for line in claims.with_plug_ins()] == [
        "claim 'broken' of the distribution mine cannot be imported"
    ]


NEEDED = {"threshold": "t", "null": "n", "mutations": ()}


def made(check, **given):
    return Claims(Claim, group="none").claim("mine", **{**NEEDED, **given})(check)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"treshold": "t"}, "claim 'mine' has no field treshold; its fields are paper, source"),
    ],
)
def test_fields_are_checked(given, message):
    with pytest.raises(ValueError, match=message):
        made(lambda x: x, **given)


def test_a_missing_field_is_named():
    with pytest.raises(
        ValueError, match="claim 'mine': missing 2 required keyword-only arguments: 'null' and 'mutations'"
    ):
        Claims(Claim, group="none").claim("mine", threshold="t")(lambda x: x)


def test_a_check_that_fails_is_named_with_its_line():
    with pytest.raises(ValueError, match=r"claim 'mine' fails: ZeroDivisionError: .*\(test_claims\.py, line \d+\)"):
        made(lambda x: 1 / x)(0)
    with pytest.raises(ValueError, match="claim 'mine': its function returned a int, not a Finding"):
        made(lambda x: x)(0)
    assert made(lambda x: Finding("", {}, HOLDS))(0).as_expected
