"""Modes of the thermostat, and the mutation that adds a bonus to the penalty."""

import dataclasses

import torch

from entrostat import StepStats, make, policy_stats
from entrostat.controllers.thermostat import Thermostat
from entrostat.tokens import Tokens
from toybandit.claims.modes import ANCHOR, HOLDING, errors, helped
from toybandit.claims.mutations import Swap
from toybandit.claims.registry import Effort

EFFORT = Effort(instances=1, runs=2, states=8, rollouts=60)


def tokens() -> Tokens:
    """Tokens of a policy that has less entropy than its reference."""
    g = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(30, 5, generator=g, dtype=torch.float64)
    action = torch.randint(5, (30, 1), generator=g)
    now, before = policy_stats(logits), policy_stats(logits / 2)
    moments = {name: getattr(now, name) for name in ("entropy", "s2", "s2l", "s2ll")}
    logp, ref_logp = (x.logp.gather(-1, action)[:, 0] for x in (now, before))
    advantage = torch.randn(30, generator=g, dtype=torch.float64)
    return Tokens(logp=logp, old_logp=logp, ref_logp=ref_logp, advantage=advantage, **moments)


def test_every_mode_is_in_the_claim():
    mode = next(f for f in dataclasses.fields(Thermostat) if f.name == "mode")
    own = "temperature"  # which holds the samples' entropy: claim temperature-loop
    assert {ANCHOR, *HOLDING, own} == set(mode.type.__args__ if hasattr(mode.type, "__args__") else ())


def test_a_bonus_lowers_the_entropy_where_the_penalty_cannot():
    """Above the target the penalty is 0; the mutation adds what `anchor+bonus` adds."""
    alone, both = (make("thermostat", target=0.85, mode=mode) for mode in ("anchor", "anchor+bonus"))
    for controller in (alone, both):
        controller.observe(StepStats(entropy=1.0))
    bare = alone.plan(tokens())
    assert bare.entropy_coef is None
    with Swap(Thermostat, "_add_anchor", helped)():
        mutated = alone.plan(tokens())
    assert torch.equal(mutated.entropy_coef, both.plan(tokens()).entropy_coef)
    assert float(mutated.entropy_coef) < 0


def test_errors_are_those_of_the_last_fifth():
    """A thermostat has reached its target by then."""
    assert (abs(errors(EFFORT, "bonus", "pure")) < 0.05).all()
