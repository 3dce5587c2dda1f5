"""Controllers by name."""

import pytest

from entrostat.by_name import has_target


@pytest.mark.parametrize(("spec", "found"), [("clip_higher + entropic", True), ("grpo", False), ("clip_higher", False)])
def test_which_chains_have_a_target(spec, found):
    assert has_target(spec) == found


def test_an_unknown_name_has_none():
    with pytest.raises(ValueError, match="unknown controller 'grpoo'; did you mean grpo"):
        has_target("grpoo+entropic")
