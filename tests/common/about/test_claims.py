"""Claims that others bring: by import path, by entry point, and what is refused."""

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


def test_problems_of_plug_ins_are_lines(claims):
    assert [line.partition(":")[0] for line in claims.with_plug_ins()] == [
        "claim 'broken' of the distribution mine cannot be imported"
    ]


NEEDED = {"threshold": "t", "null": "n", "mutations": ()}


def made(check, **given):
    return Claims(Claim, group="none").claim("mine", **{**NEEDED, **given})(check)


def same(x):
    return x


WRONG = {
    "claim 'mine_claims:plain' is a function, not a function under @claim": lambda claims: claims.choose(
        ["mine_claims:plain"]
    ),
    "claim 'mine_claims:absent' cannot be imported": lambda claims: claims.choose(["mine_claims:absent"]),
    "claim 'broken' of the distribution mine cannot be imported": lambda claims: claims.choose(["broken"]),
    "unknown claim 'positiv'": lambda claims: claims.choose(["positiv"]),
    "claim 'mine' has no field treshold; its fields are paper, source": lambda _: made(same, treshold="t"),
    "claim 'mine': missing 2 required keyword-only arguments: 'null' and 'mutations'": lambda claims: claims.claim(
        "mine", threshold="t"
    )(same),
    r"claim 'mine' fails: ZeroDivisionError: .*\(test_claims\.py, line \d+\)": lambda _: made(lambda x: 1 / x)(0),
    "claim 'mine': its function returned a int, not a Finding": lambda _: made(same)(0),
}


@pytest.mark.parametrize(("message", "wrong"), WRONG.items())
def test_what_is_wrong_is_named(claims, message, wrong):
    with pytest.raises(ValueError, match=message):
        wrong(claims)


def test_a_check_whose_fields_are_right_is_measured():
    assert made(lambda x: Finding("", {}, HOLDS))(0).as_expected
