"""Chains are the product of their parts, and say when the parts contradict each other."""

import math
import warnings
from dataclasses import replace

import pytest
import torch
from helpers import sampled_tokens
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_plan import CONTROLLERS

from entrostat import CompositionWarning, StepStats, Tokens, chain, make
from entrostat.by_name import REGISTRY
from entrostat.chaining import OPPOSITES
from entrostat.numbers.support import truncated_entropy
from entrostat.sample_batch import ragged_batch
from entrostat.surrogates import SurrogateController

STATS = StepStats(entropy=0.9, step=6, total_steps=8, epoch=2, epochs=3)


def parts() -> list[tuple[str, dict]]:
    """Tested settings of every single controller that is not a surrogate, does not look at what others planned, and
    leaves the advantage to the surrogate: those whose product is defined."""
    alone = []
    batch = ragged_batch(0, moved=0.0)
    for spec, given_settings in CONTROLLERS:
        if "+" in spec or issubclass(REGISTRY[spec], SurrogateController) or REGISTRY[spec].last:
            continue
        own = {k: v for k, v in given_settings.items() if k in REGISTRY[spec].__dataclass_fields__}
        if torch.equal(planned([(spec, own)], batch).advantage, batch.tokens.advantage):
            alone.append((spec, own))
    return alone


def planned(some: list[tuple[str, dict]], batch):
    """Plan of a chain behind clip_higher, its loops moved once."""
    controller = chain(make("clip_higher"), *(REGISTRY[name](**own) for name, own in some))
    controller.observe(STATS)
    tokens = batch.tokens
    if controller.support is not None:
        tokens = replace(tokens, truncated_entropy=truncated_entropy(batch.features @ batch.weight, controller.support))
    return controller.plan(tokens, seed=2, step=5)


def compatible(some) -> bool:
    """Return True if no name occurs twice, no two undo each other and no two loops move the same thing."""
    built = [REGISTRY[name](**own) for name, own in some]
    loops = [part.controls for part in built if part.controls]
    supports = [part for part in built if part.support is not None]
    names = {name for name, _ in some}
    if any(names >= pair for pair in OPPOSITES) or sum(part.anchored for part in built) > 1:
        return False
    return len(names) == len(some) and len(set(loops)) == len(loops) and len(supports) < 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::entrostat.CompositionWarning")
@settings(derandomize=True, deadline=None, max_examples=150)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_chains_are_products(data, seed):
    some = data.draw(st.lists(st.sampled_from(PARTS), min_size=2, max_size=3).filter(compatible))
    batch = ragged_batch(seed)
    whole, each = planned(some, batch), [planned([one], batch) for one in some]
    assume(all(bool((p.weight >= 0).all()) for p in each))  # a negative weight turns which bound clips a token
    shape = whole.advantage.shape
    weight = torch.stack([p.weight.expand(shape) for p in each]).prod(0)
    torch.testing.assert_close(whole.weight.expand(shape), weight, rtol=1e-14, atol=0)
    assert torch.equal(whole.keep.expand(shape), torch.stack([p.keep.expand(shape) for p in each]).all(0))
    for name in ("entropy_coef", "kl_coef", "ref_coef", "truncated_coef"):
        found = [getattr(p, name) for p in each if getattr(p, name) is not None]
        ours = getattr(whole, name)
        assert (ours is None) == (not found)
        if ours is not None:
            torch.testing.assert_close(*torch.broadcast_tensors(ours, sum(found)), rtol=1e-14, atol=0)
    assert whole.info.keys() == {key for p in each for key in p.info}
    for bound in ("clip_low", "clip_high", "dual_clip"):
        ours, expected = getattr(whole, bound), getattr(each[0], bound)
        assert (ours is None) == (expected is None)
        if ours is not None:
            assert torch.equal(ours, expected)


@pytest.mark.filterwarnings("ignore::entrostat.CompositionWarning")
@settings(derandomize=True, deadline=None, max_examples=50)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_order_does_not_matter(data, seed):
    some = data.draw(st.lists(st.sampled_from(PARTS), min_size=2, max_size=3).filter(compatible))
    order = data.draw(st.permutations(some))
    batch = ragged_batch(seed)
    each = [planned([one], batch) for one in some]
    assume(all(bool((p.weight >= 0).all()) for p in each))  # a negative weight turns which bound clips a token
    first, second = planned(some, batch), planned(order, batch)
    torch.testing.assert_close(first.weight, second.weight, rtol=1e-14, atol=0)
    assert torch.equal(first.keep, second.keep)


PARTS = parts()


def test_parts_are_many():
    assert {"clip_cov", "kl_cov", "steer", "opefo", "entropic", "entropy_bonus"} <= {name for name, _ in PARTS}


@pytest.mark.filterwarnings("ignore::entrostat.CompositionWarning")
def test_a_chain_by_hand():
    """Weights 1.5 and 0.7 multiply, bonuses 0.1 and 0.05 add; the dropped token stays dropped."""
    tokens = Tokens(
        logp=torch.tensor([-0.1, -3.0], dtype=torch.float64),
        old_logp=torch.tensor([-0.1, -3.0], dtype=torch.float64),
        advantage=torch.tensor([1.0, 1.0], dtype=torch.float64),
        entropy=torch.tensor([1.0, 1.0], dtype=torch.float64),
    )
    controller = make("entropic+entropy_bonus+adaptive_entropy", **{
        "entropic.target": 0.5, "kp": 0.5, "ki": 0.0, "tau": 0.5,
        "coef": 0.1, "adaptive_entropy.target": 9.0, "delta": 0.05, "coef_max": 1.0,
    })  # fmt: skip
    controller.observe(StepStats(entropy=1.5))
    plan = controller.plan(tokens)
    assert plan.weight.tolist() == [1.5, 1.0]
    assert plan.entropy_coef.item() == pytest.approx(0.15)


LOOPS = "'{}' and '{}' are both closed loops on the {}"
WRONG = [
    ("positive_reweight+entropic", {}, LOOPS.format("positive_reweight", "entropic", "weights of tokens")),
    ("entropic+clip_higher+positive_reweight", {}, LOOPS.format("entropic", "positive_reweight", "weights of tokens")),
    ("entropic+thermostat", {"mode": "reweight"}, LOOPS.format("entropic", "thermostat", "weights")),
    ("entropic+thermostat", {"mode": "both"}, LOOPS.format("entropic", "thermostat", "weights")),
    ("adaptive_entropy+thermostat", {}, LOOPS.format("adaptive_entropy", "thermostat", "entropy bonus")),
    ("adaptive_entropy+thermostat", {"mode": "both"}, LOOPS.format("adaptive_entropy", "thermostat", "entropy bonus")),
    ("positive_only+steer+negative_only", {}, "'negative_only' and 'positive_only' contradict each other"),
]


@pytest.mark.parametrize(("spec", "settings", "message"), WRONG)
def test_parts_that_contradict_each_other(spec, settings, message):
    with pytest.raises(ValueError, match=message):
        make(spec, **settings)


def test_schedules_are_no_loops():
    """A weight that follows the clock does not answer to the entropy, so nothing fights."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make("positive_reweight+entropic", variant="stage")
        make("entropy_bonus+entropic")
        make("clip_cov+steer+adaptive_entropy")


def test_two_loops_on_one_entropy_are_worth_a_warning():
    with pytest.warns(
        CompositionWarning, match="'entropic' .the weights of tokens. and 'adaptive_entropy' .the entropy"
    ):
        make("entropic+adaptive_entropy")


def on_policy(n: int = 20) -> Tokens:
    t = sampled_tokens(n)
    return replace(t, old_logp=t.logp.clone())


def caught(controller, rollouts: list[list[Tokens]]) -> list[str]:
    """Messages of the warnings of these rollouts, a plan for each mini-batch."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for number, mini_batches in enumerate(rollouts):
            controller.observe(StepStats(entropy=1.0, step=number))
            for tokens in mini_batches:
                controller.plan(tokens)
    return [str(w.message) for w in seen if issubclass(w.category, CompositionWarning)]


def test_kl_cov_strictly_on_policy():
    fresh, moved = on_policy(), sampled_tokens(20)
    (message,) = caught(make("kl_cov"), [[fresh, fresh]] * 3)
    assert "'kl_cov' is without effect: log π equalled log π_old in all updates" in message
    assert caught(make("kl_cov"), [[fresh, moved]] * 3) == []
    assert caught(make("kl_cov"), [[fresh]]) == []  # the rollout is not over
    same = replace(fresh, old_logp=fresh.logp)
    assert len(caught(make("kl_cov+steer"), [[same], [same]])) == 1
    assert len(caught(make("entropy_ratio_clip"), [[fresh]] * 3)) == 1
    assert caught(make("grpo"), [[fresh]] * 3) == []


@pytest.mark.parametrize("spec", ["opefo", "reinforce", "reinforce+opefo"])
def test_strictly_on_policy_with_reused_samples(spec):
    fresh, moved = on_policy(), sampled_tokens(20)
    (message,) = caught(make(spec), [[fresh, moved, moved]] * 3)
    assert "strictly on-policy by its rule, but log π differs from log π_old" in message
    assert all(repr(name) in message for name in spec.split("+"))
    rounding = replace(fresh, old_logp=fresh.logp + 1e-7)
    assert caught(make(spec), [[fresh, rounding]] * 3) == []


def test_ranks_and_batches_without_tokens_say_nothing():
    nothing = sampled_tokens(4).select(torch.arange(0))
    assert caught(make("kl_cov+opefo"), [[nothing]] * 2) == []


def entropy_by_products(logits):
    """Entropy as −Σ p·log p, which is NaN where a probability is 0 (huggingface/trl#7221, NovaSky-AI/SkyRL#2259)."""
    logp = logits.log_softmax(-1)
    return -(logp.exp() * logp).sum(-1)


@pytest.mark.parametrize("spec", ["aem", "clip_b", "entropy_bonus", "grpo"])
def test_an_entropy_of_nan_is_refused_where_the_token_has_a_probability(spec):
    t = sampled_tokens(6)
    logits = torch.zeros(6, 4)
    logits[2:4, 1:3] = -torch.inf
    with pytest.raises(ValueError, match=r"entropy is NaN for 2 tokens with a finite logp: .*special\.entr\(p\)"):
        make(spec).plan(replace(t, entropy=entropy_by_products(logits)))
    right = torch.special.entr(logits.softmax(-1)).sum(-1)
    assert right.tolist() == pytest.approx([math.log(4)] * 2 + [math.log(2)] * 2 + [math.log(4)] * 2)
    make(spec).plan(replace(t, entropy=right))
    make(spec).plan(replace(t, entropy=torch.full((6,), torch.inf)))  # for the guard of the step


def test_a_policy_of_nan_is_left_to_the_guard_of_the_step():
    t = sampled_tokens(6)
    lost = torch.full((6,), torch.nan)
    make("entropy_bonus").plan(replace(t, logp=lost, entropy=lost))


def test_probabilities_in_place_of_their_logarithms_are_refused_at_once():
    t = sampled_tokens(6)
    with pytest.raises(ValueError, match=r"Tokens\.logp is between 0 and 1: pass log-probabilities \(nats\)"):
        make("grpo").plan(replace(t, logp=t.logp.exp(), old_logp=t.logp.exp()))
    certain = torch.full((6,), 1e-3)  # of a policy in bfloat16
    make("grpo").plan(replace(t, logp=certain, old_logp=certain))


def test_padding_in_the_first_plans_is_told_once_and_a_filler_refused():
    t = sampled_tokens(60)
    zeros = torch.arange(60) % 20 >= 12
    rows = replace(t, logp=t.logp.masked_fill(zeros, 0.0), old_logp=t.old_logp.masked_fill(zeros, 0.0))
    (message,) = caught(make("grpo"), [[rows, rows], [rows]])
    assert message.startswith("40% of the tokens have a log-probability of exactly 0, one after another")
    assert caught(make("grpo"), [[t, t], [t]]) == []
    with pytest.raises(ValueError, match=r"^Tokens\.old_logp is 1 for a token"):
        make("grpo").plan(replace(t, old_logp=t.old_logp.masked_fill(zeros, 1.0)))


def test_padding_that_comes_with_the_second_mini_batch_is_seen_too():
    t, controller = sampled_tokens(6), make("grpo")
    controller.plan(t)
    with pytest.raises(ValueError, match=r"^Tokens\.logp is 1 for a token"):
        controller.plan(replace(t, logp=t.logp.masked_fill(torch.arange(6) > 3, 1.0)))


def test_an_advantage_of_nan_is_told_once_and_left_to_the_guard():
    t = sampled_tokens(6)
    lost = replace(t, advantage=t.advantage.masked_fill(torch.arange(6) == 2, torch.nan))
    (message,) = caught(make("grpo"), [[t, lost, lost], [lost]])
    assert message.startswith(
        "Tokens.advantage is NaN for 1 tokens with a finite logp, and so is the update: leave it out"
    )


@pytest.mark.parametrize("spec", ["adaptive_entropy", "entropic", "thermostat", "grpo"])
def test_entropies_of_tokens_in_place_of_their_mean_are_refused(spec):
    """As states of a controller they would make N losses of N tokens."""
    t, controller = sampled_tokens(6), make(spec)
    controller.observe(StepStats(entropy=t.entropy))
    with pytest.raises(
        ValueError, match=r"^StepStats\.entropy has shape \(6,\), .*: observe one number, the mean over the"
    ):
        controller.plan(t)
    controller.observe(StepStats(entropy=t.entropy.mean()))
    controller.plan(t)
    runs = sampled_tokens(2, 6)
    for mean in (runs.entropy.mean(-1), 1.0, torch.ones(1)):
        controller = make(spec)
        controller.observe(StepStats(entropy=mean))
        assert controller.plan(runs).loss(runs.logp, runs.entropy).shape == (2,)


def test_rows_of_a_padded_batch_are_told_to_be_runs():
    t = sampled_tokens(2, 6)
    (message,) = caught(make("grpo"), [[t, t], [t]])
    assert message.startswith("Tokens.advantage has shape (2, 6): 2 runs with a loss each, and one entropy")
    assert caught(make("grpo"), [[sampled_tokens(1, 6), sampled_tokens(6)]]) == []


def test_a_share_of_a_first_entropy_of_0_is_refused():
    said = r"^thermostat's target=0\.4x is relative to the first entropy, and that is 0 nats: give it in nats"
    with pytest.raises(ValueError, match=said):
        make("thermostat", target="0.4x").observe(StepStats(entropy=0.0))
    late = make("thermostat", target="0.4x")
    with pytest.warns(CompositionWarning, match="the first StepStats.entropy is not finite: 'thermostat' is waiting"):
        late.observe(StepStats(entropy=math.nan))
    with pytest.raises(ValueError, match=said):
        late.observe(StepStats(entropy=torch.tensor(-0.01)))
    make("thermostat", target=0.4).observe(StepStats(entropy=0.0))
    fine = make("thermostat", target="0.4x")
    for entropy in (0.5, 0.0):
        fine.observe(StepStats(entropy=entropy))
    assert float(fine.parts[0].target) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: make("grpo").observe(0.3), r"^observe takes StepStats\(entropy=\.\.\.\), not float$"),
        (lambda: make("grpo").plan({"logp": 0}), r"^plan takes Tokens\(\.\.\.\), not dict$"),
        (lambda: chain("clip_higher"), r"^chain takes controllers, such as make\('clip_higher'\), not 'clip_higher'$"),
        (lambda: chain(REGISTRY["entropic"]), r"^chain takes controllers, .*Entropic"),
        (lambda: make(None), r"^make takes names joined by \+, .*, not None; chain takes controllers$"),
        (lambda: make(["clip_higher", "steer"]), r"^make takes names joined by \+"),
    ],
)
def test_another_thing_than_asked_for_is_told_in_one_line(call, said):
    with pytest.raises(TypeError, match=said):
        call()


def test_a_hyperparameter_that_is_learned_is_refused():
    with pytest.raises(ValueError, match=r"^entropy_bonus: coef has a gradient, .*: pass coef\.detach\(\)$"):
        make("entropy_bonus", coef=torch.tensor(0.1, requires_grad=True))


def test_a_loop_that_is_never_fed_says_so():
    controller, tokens = make("clip_higher+thermostat", target=0.4), sampled_tokens(20)
    for _ in range(3):
        controller.plan(tokens)
    with pytest.warns(CompositionWarning, match="no entropy observed: 'thermostat' is waiting"):
        controller.plan(tokens)


def test_a_sum_and_a_negative_are_no_entropy():
    with pytest.raises(ValueError, match="not their sum"):
        make("thermostat").observe(StepStats(entropy=500.0))
    tokens = sampled_tokens(20)
    with pytest.raises(ValueError, match="not −H"):
        make("steer").plan(replace(tokens, entropy=-tokens.entropy))
    with pytest.raises(TypeError, match="floating-point"):
        replace(tokens, logp=tokens.logp.long())


def test_an_old_log_probability_of_nan_is_told():
    tokens = sampled_tokens(20)
    old_logp = tokens.old_logp.clone()
    old_logp[..., 0] = torch.nan
    with pytest.warns(CompositionWarning, match="old_logp is NaN for 1"):
        make("grpo").plan(replace(tokens, old_logp=old_logp))
