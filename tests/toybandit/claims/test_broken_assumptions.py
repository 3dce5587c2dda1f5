"""Verdicts change when what they assume is taken away."""

from dataclasses import replace

import pytest

from toybandit.claims import CLAIMS
from toybandit.claims.registry import FAILS, Effort
from toybandit.environments import ENVIRONMENTS

pytestmark = pytest.mark.slow

ON_POLICY = {"passes": 1, "lr": 1.0}
NO_NOISE = {"reward_right": 1.0, "reward_wrong": 0.0}
CASES = [
    ("clip-thresholds", "noisy", ON_POLICY),
    ("cor4.1-signs", "noisy", ON_POLICY),
    ("kl-cov", "noisy", ON_POLICY),
    ("thm4.3-off-policy", "noisy", ON_POLICY),
    ("pos-adv-reweight", "noisy", NO_NOISE),
    ("four-quadrants", "noisy", NO_NOISE),
    ("kl-cov-on-policy", "on", {"passes": 2}),
    ("opefo-one-step", "on", {"coupling": 0.3}),
    ("opefo-run", "on", {"lr": 1.0, "update": "adam"}),
    ("tau-zero", "on", {"passes": 8, "lr": 0.5}),
    ("law-fit", "det", {"reward_right": 0.5, "reward_wrong": 0.5}),
]
"""A claim, the environment that it is about, and what is changed there."""


@pytest.mark.parametrize(("name", "env", "change"), CASES, ids=[name for name, *_ in CASES])
def test_verdict_without_its_assumption(name, env, change, monkeypatch):
    effort = Effort(instances=100 + CASES.index((name, env, change)), runs=4, states=24, rollouts=80)
    assert CLAIMS[name](effort).verdict == CLAIMS[name].expected != FAILS
    monkeypatch.setitem(ENVIRONMENTS, env, replace(ENVIRONMENTS[env], **change))
    broken = replace(effort, instances=effort.instances + 100)  # nothing measured before is looked up
    assert CLAIMS[name](broken).verdict == FAILS
