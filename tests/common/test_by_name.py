"""Controllers by name."""

import pytest

from entrostat.by_name import has_target


@pytest.mark.parametrize(
    ("spec", "found"), [("clip_higher + entropic", True), ("grpo", False), ("clip_higher", False), ("grpoo", False)]
)
def test_which_chains_have_a_target(spec, found):
    assert has_target(spec) == found
