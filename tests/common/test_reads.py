"""Fields that a rule reads are found by a trial, and it gets no others, whoever calls it."""

from dataclasses import dataclass, replace

import pytest
import torch

import entrostat as es
from entrostat import Controller, StepStats, chain, make
from entrostat.numbers.per_run import column
from entrostat.reads import UndeclaredReadError, found_reads, needs_of
from entrostat.sample_batch import ragged_batch


@dataclass(kw_only=True)
class Sharp(Controller):
    """Reads log π only while the entropy is low, and entropies always."""

    name = "sharp"
    target: float = 0.5
    state = ("low",)

    def __post_init__(self):
        super().__post_init__()
        self.low = torch.tensor(False)

    def observe(self, stats):
        self.low = torch.as_tensor(stats.entropy) < self.target

    def transform(self, plan, context):
        tokens = context.tokens
        weight = 1 + tokens.get("entropy")
        return plan.reweight(weight * tokens.logp.exp() if bool(self.low) else weight)


@dataclass(kw_only=True)
class Narrow(Sharp):
    """Names one field of the two that it reads."""

    name = "narrow"

    @property
    def needs(self):
        return frozenset({"entropy"})


def test_fields_are_found_in_each_state_of_a_rule():
    rule = Sharp()
    assert needs_of(rule) == found_reads(rule) == {"entropy", "logp"}
    assert not rule.low  # a copy was tried
    assert chain(rule).needs == {"entropy", "logp", "old_logp"}


def test_a_trial_leaves_the_random_numbers_alone():
    class Drawing(Sharp):
        def transform(self, plan, context):
            return plan.reweight(torch.rand(context.tokens.size))

    before = torch.get_rng_state()
    assert needs_of(Drawing()) == set()
    assert torch.equal(torch.get_rng_state(), before)


def test_reading_more_than_it_names_is_an_error_with_rule_and_field():
    controller, tokens = chain(Narrow()), ragged_batch(0).tokens
    controller.plan(tokens)
    controller.observe(StepStats(entropy=0.1))
    with pytest.raises(UndeclaredReadError, match=r"^controller 'narrow' reads Tokens.logp, .* names entropy;"):
        controller.plan(tokens)


def test_what_no_trial_has_seen_is_an_error_too():
    class Late(Sharp):
        def transform(self, plan, context):
            tokens = context.tokens
            return plan.reweight(tokens.get("entropy") if tokens.size > 1 else tokens.get("reward"))

    whole = ragged_batch(0).tokens
    one = es.Tokens(**{name: x if x is None else x[:1] for name, x in vars(whole).items()})
    with pytest.raises(UndeclaredReadError, match=r"reads Tokens.reward, .* in its trial plans it read entropy;"):
        chain(Late()).plan(one)


@pytest.mark.parametrize("how", ["attribute", "get", "getattr"])
def test_there_is_no_way_around(how):
    @dataclass(kw_only=True)
    class Sly(Narrow):
        def transform(self, plan, context):
            tokens = context.tokens
            read = {"attribute": lambda: tokens.s2, "get": lambda: tokens.get("s2")}
            return plan.reweight(read.get(how, lambda: getattr(tokens, "s2", None))())

    with pytest.raises(UndeclaredReadError, match=r"'narrow' reads Tokens.s2"):
        chain(Sly()).plan(ragged_batch(0).tokens)


def test_each_part_of_a_chain_has_fields_of_its_own():
    """Also after a part has changed the advantage."""
    controller = chain(*make("entropy_advantage").parts, Sharp())
    tokens = ragged_batch(0).tokens
    plan = controller.plan(tokens)
    assert not torch.equal(plan.advantage, tokens.advantage)
    expected = plan.weight / (1 + tokens.entropy)
    torch.testing.assert_close(expected, torch.ones_like(expected))
    sly = chain(*make("entropy_advantage").parts, Narrow())
    sly.observe(StepStats(entropy=0.1))
    with pytest.raises(UndeclaredReadError, match=r"'narrow' reads Tokens.logp"):
        sly.plan(tokens)


def test_a_field_that_is_absent_is_named_before_the_plan():
    with pytest.raises(ValueError, match=r"^controller 'sharp' needs Tokens.entropy$"):
        chain(Sharp()).plan(replace(ragged_batch(0).tokens, entropy=None))


def test_a_rule_that_fails_in_its_trial_is_named():
    class Broken(Sharp):
        def transform(self, plan, context):
            raise KeyError

    with pytest.raises(ValueError, match=r"^controller 'sharp' fails on a few tokens: KeyError: no reason given"):
        chain(Broken())


@pytest.mark.parametrize("name", es.list_controllers())
def test_what_a_controller_names_is_what_it_reads(name):
    """It may name more: what its bonus or its loss will need."""
    for part in make(name).parts:
        assert found_reads(part) <= needs_of(part)


def test_numbers_for_each_run_may_be_hyperparameters():
    @dataclass(kw_only=True)
    class Scaled(Controller):
        name = "scaled"
        scale: es.Number = 1.0

        def transform(self, plan, context):
            return plan.reweight(column(self.scale, context.tokens.advantage) * context.tokens.get("reward"))

    assert needs_of(Scaled(scale=torch.tensor([1.0, 2.0, 3.0]))) == {"reward"}


def test_the_older_name_of_a_reading_is_understood():
    from entrostat.controller import as_reading

    assert as_reading is es.reading
