"""Settings that a drop-in sends elsewhere: the setting that its error names exists."""

import re

import pytest

from entrostat.registry import REGISTRY, hyperparameters

trl_settings = pytest.importorskip("entrostat.integrations.trl_settings")
verl_settings = pytest.importorskip("entrostat.integrations.verl_settings")
INSTEAD = {**trl_settings.REPLACED, **verl_settings.REPLACED, **verl_settings.REPLACED_LOSS}
NAMED = re.compile(r"set ([\w, ]+?) of (?:the )?(\w+)(?: in policy_loss\.controller_args)?$")
ADDED = re.compile(r"add (\w+) to the controller")


@pytest.mark.parametrize(("theirs", "words"), sorted(INSTEAD.items()))
def test_the_setting_to_use_instead_exists(theirs, words):
    if added := ADDED.match(words):
        assert added[1] in REGISTRY
    if named := NAMED.match(words):
        settings, owner = named.groups()
        owner = "ppo" if owner == "controller" else owner
        assert set(re.split(r", | and ", settings)) <= {*hyperparameters(REGISTRY[owner])}


def test_most_hints_name_a_setting():
    assert sum(bool(NAMED.match(words)) for words in INSTEAD.values()) > 12
