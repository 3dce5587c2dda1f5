"""Units in the names of metrics."""

import math

import pytest

from entrostat.logs.foreign.units import nats, told, unit


@pytest.mark.parametrize(
    ("name", "found", "plain"),
    [
        ("entropy_bits", "bits", "entropy"),
        ("actor/entropy/bits", "bits", "actor/entropy"),
        ("mean entropy (bits)", "bits", "mean entropy"),
        ("entropy [in bits]", "bits", "entropy"),
        ("entropyBits", "bits", "entropy"),
        ("entropy_log2", "bits", "entropy"),
        ("entropy_base_2", "bits", "entropy"),
        ("entropy_bits_per_token", "bits", "entropy_per_token"),
        ("entropy_nats", "nats", "entropy"),
        ("entropy_hartleys", "hartleys", "entropy"),
    ],
)
def test_units(name, found, plain):
    one = unit(name)
    assert one is not None
    assert (one.name, one.plain) == (found, plain)
    assert one.nats == {"bits": math.log(2), "nats": 1.0, "hartleys": math.log(10)}[found]


@pytest.mark.parametrize("name", ["entropy", "entropy_8bit", "entropy_4_bit", "orbits/entropy", "entropy_bitsy"])
def test_names_without_a_unit(name):
    assert unit(name) is None
    assert nats(name) == 1.0


def test_only_what_was_converted_is_told():
    assert told({"entropy": "entropy_bits"}) == (
        "entropy_bits is in bits by its name: its values are times 0.693, in nats"
    )
    assert told({"entropy": "entropy_nats", "reward": "mine"}) == ""
