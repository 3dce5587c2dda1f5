"""The custom loss for prime-rl, called as its compute_loss calls one: sequence by sequence.

prime-rl is not on PyPI, so that its two dataclasses are stood in for here. With a checkout on the path all tests run
through its own compute_loss: PYTHONPATH=prime-rl/src:prime-rl/packages/prime-rl-configs/src, with what these import.
"""

import importlib
import re
import sys
import tomllib
import warnings
from dataclasses import make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.docs.pages import BLOCK

import entrostat as es
from entrostat.integrations import prime_rl as ours

try:
    theirs = importlib.import_module("prime_rl.trainer.rl.loss")
    configs = importlib.import_module("prime_rl.configs.trainer")
except ImportError:
    theirs = configs = None
OLDER = ("trainer_logprobs", "inference_logprobs", "ref_logprobs", "advantages", "loss_mask")
"""Fields of LossInputs in prime-rl 0.4 to 0.6, but for a name."""
LossInputs = make_dataclass("LossInputs", [*OLDER, ("loss_weights", Any, None)]) if not theirs else theirs.LossInputs
LossOutputs = make_dataclass("LossOutputs", ["loss", "metrics"])
LOSS = "prime_rl.trainer.rl.loss"
PAGE = (Path(__file__).parents[2] / "docs/prime_rl.md").read_text()
GIVEN = {"logp", "old_logp", "seq_id", "position", "turn_id"}
SETTINGS: dict[str, dict[str, Any]] = {
    "clip_cov": {"k": 0.1, "omega_low": -9.0, "omega_high": 9.0},
    "gmpo": {"eps": 0.1},
    "gspo": {"eps_low": 0.05, "eps_high": 0.05},
    "opsm": {"delta": 0.01},
    "quadrant_mask": {"exploration": 0.0, "share": 0.5},
}
"""Hyperparameters with which a rule acts on some of the tokens below."""


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No controller is kept from another test; prime-rl's module is there."""
    if theirs is None:
        monkeypatch.setitem(sys.modules, LOSS, SimpleNamespace(LossInputs=LossInputs, LossOutputs=LossOutputs))
    ours._built.cache_clear()
    ours._loss_outputs.cache_clear()


def sequences(dtype=torch.float64) -> list[LossInputs]:
    """Eight sequences: a prompt, turns of the policy and of an environment, and padding, which are not trained."""
    g = torch.Generator().manual_seed(5)
    found = []
    for length in (9, 30, 1, 17, 12, 25, 8, 40):
        logp = -3 * torch.rand(length, generator=g, dtype=torch.float64)
        old = logp + 0.25 * torch.randn(length, generator=g, dtype=torch.float64)
        advantage = torch.randn(1, generator=g, dtype=torch.float64).repeat(length)
        mask = torch.rand(length, generator=g) < 0.7
        mask[-1] = True
        others = {"ref_logprobs": None, "loss_mask": mask, "loss_weights": None}
        numbers = {"trainer_logprobs": logp, "inference_logprobs": old, "advantages": advantage}
        found.append(LossInputs(**others, **{name: x.to(dtype) for name, x in numbers.items()}))
    for inputs in found:
        inputs.trainer_logprobs.requires_grad_()
    return found


def turns_of(mask: list[bool]) -> list[int]:
    """The turn of each trained token, by a plain loop."""
    starts = [own and not (i and mask[i - 1]) for i, own in enumerate(mask)]
    return [sum(starts[: i + 1]) - 1 for i, own in enumerate(mask) if own]


def tokens_of(batch: list[LossInputs]) -> es.Tokens:
    """The trained tokens of all sequences, as one mini-batch."""

    def packed(name: str) -> torch.Tensor:
        return torch.cat([getattr(x, name)[x.loss_mask] for x in batch]).detach()

    sizes = torch.tensor([int(x.loss_mask.sum()) for x in batch])
    return es.Tokens(
        logp=packed("trainer_logprobs"),
        old_logp=packed("inference_logprobs"),
        advantage=packed("advantages"),
        seq_id=torch.arange(len(batch)).repeat_interleave(sizes),
        position=torch.cat([torch.arange(size) for size in sizes]),
        turn_id=torch.cat([torch.tensor(turns_of(x.loss_mask.tolist())) for x in batch]),
    )


def update(batch: list[LossInputs], controller: str, **args) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and its gradient (N,) in log π of the trained tokens, divided as prime-rl divides."""
    if theirs is not None:
        kwargs = {"controller": controller, "controller_args": args}
        loss, _ = through_prime_rl(
            batch, configs.CustomLossConfig(import_path="entrostat.integrations.prime_rl.loss", kwargs=kwargs)
        )
    else:
        total = sum(ours.loss(x, controller, controller_args=args).loss for x in batch)
        loss = total / sum(int(x.loss_mask.sum()) for x in batch)
    loss.backward()
    return loss.detach(), torch.cat([x.trainer_logprobs.grad[x.loss_mask] for x in batch])


def through_prime_rl(batch: list[Any], config: Any) -> tuple[torch.Tensor, dict]:
    """Return loss and metrics of prime-rl's own compute_loss."""
    columns = {
        name: [getattr(x, name) for x in batch]
        for name in ("trainer_logprobs", "inference_logprobs", "advantages", "loss_mask")
    }
    fixed = {"ref_logprobs": None, "ce_weights": None, "ref_kl_weights": None, "ce_scale": 1, "ref_kl_scale": 1}
    weights = None if batch[0].loss_weights is None else [x.loss_weights for x in batch]
    size = max(sum(int(x.loss_mask.sum()) for x in batch), 1)
    return theirs.compute_loss(
        **columns, **fixed, rl_weights=weights, rl_scale=size, rl_loss_fn=theirs.setup_rl_loss_fn(config)
    )


def mini_batch(batch: list[LossInputs], controller: str, **args) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of one plan over the whole mini-batch."""
    tokens = tokens_of(batch)
    logp = tokens.logp.clone().requires_grad_()
    loss = es.make(controller, aggregation="token-mean", denominator="all", **args).plan(tokens).loss(logp)
    return loss.detach(), torch.autograd.grad(loss, logp)[0]


def splitting_changes(name: str) -> bool:
    """Return True if plans of single sequences have another gradient than the plan of the mini-batch."""
    tokens, controller = tokens_of(sequences()), es.make(name, **SETTINGS.get(name, {}))

    def slopes(part: es.Tokens) -> torch.Tensor:
        plan = controller.plan(part)
        return plan.coefficients(part.logp)[0] / plan.scale

    split = [slopes(tokens.select((tokens.seq_id == i).nonzero()[:, 0])) for i in tokens.seq_id.unique()]
    return not torch.allclose(torch.cat(split), slopes(tokens), 1e-9, 1e-12)


def measured(name: str) -> str:
    """Return the row of the page on which a controller belongs."""
    controller = es.make(name)
    if controller.support is not None or not controller.needs <= GIVEN:
        return "needs more than log-probabilities and advantages"
    if any(controller.state_dict().values()):
        return "closed loop"
    if splitting_changes(name):
        return "compares the tokens of a mini-batch"
    controller = es.make(name, **SETTINGS.get(name, {}))
    first, other = (controller.plan(tokens_of(sequences()), step=step).weight for step in (0, 1))
    return "runs" if torch.equal(first, other) else "draws tokens at random"


ROWS = {
    row: re.findall(r"`(\w+)`", names)
    for row, names in re.findall(r"^\| ([^|`]+) \| (`\w+`.*) \|$", PAGE, re.MULTILINE)
}
RUN = ROWS["runs"]
REFUSED = [name for row, names in ROWS.items() if row != "runs" for name in names]


def test_the_table_of_the_page_is_what_is_measured():
    found = {name: measured(name) for name in es.list_controllers()}
    assert {name: row for row, names in ROWS.items() for name in names} == found
    assert len(RUN) + len(REFUSED) == len(found)


@pytest.mark.parametrize("name", RUN)
def test_sequence_by_sequence_it_is_the_plan_of_the_mini_batch(name):
    args = SETTINGS.get(name, {})
    loss, gradient = update(sequences(), name, **args)
    expected, slopes = mini_batch(sequences(), name, **args)
    torch.testing.assert_close(loss, expected, rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(gradient, slopes, rtol=1e-13, atol=1e-15)


def test_a_chain_with_settings_of_its_parts():
    args = {"eps_high": 0.1, "opsm.delta": 0.01}
    loss, gradient = update(sequences(), "clip_higher+opsm+position_advantage", **args)
    expected, slopes = mini_batch(sequences(), "clip_higher+opsm+position_advantage", **args)
    torch.testing.assert_close(loss, expected, rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(gradient, slopes, rtol=1e-13, atol=1e-15)
    assert not torch.equal(gradient, update(sequences(), "clip_higher")[1])


def test_a_clipped_token_by_hand():
    """Ratios 1.5, clipped at 1.2, and 0.5, not clipped at A = 2; a third token is not trained."""
    old = torch.tensor([-1.0, -1.0, -1.0], dtype=torch.float64)
    logp = (old + torch.tensor([1.5, 0.5, 3.0], dtype=torch.float64).log()).requires_grad_()
    found = ours.loss(LossInputs(logp, old, None, torch.full_like(old, 2.0), torch.tensor([True, True, False])), "ppo")
    found.loss.backward()
    assert found.loss.item() == pytest.approx(-2 * (1.2 + 0.5))
    assert logp.grad.tolist() == pytest.approx([0, -2 * 0.5, 0])
    assert {key: x.item() for key, x in found.metrics.items()} == {"entrostat/clip_fraction": 0.5}


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REFUSED)
def test_what_one_sequence_is_not_enough_for_is_refused_by_name(name):
    for spec in (name, f"position_advantage+{name}"):
        with pytest.raises(ValueError, match=rf"^controller '{name}' cannot run in prime-rl: it [^\n]+$"):
            ours.build(spec, controller_args=SETTINGS.get(name))


@pytest.mark.parametrize(
    ("controller", "args", "message"),
    [
        ("clip_cov", {"omega_low": 50.0, "omega_high": 90.0}, "'clip_cov' .* it compares"),  # no token is that far
        ("kl_cov", {"beta": 0.0}, "'kl_cov' .* it compares"),
        ("clip_higher", {"eps_high": "linear(0.28, 0.2, 400)"}, "'clip_higher' .* a closed loop or has a schedule"),
        (
            "opsm",
            {"sampler": "rollout"},
            "'opsm' .* needs Tokens.rollout_logp, .*; old_logp is the rollout engine's here",
        ),
        ("kl_ref", {}, "'kl_ref' .* needs Tokens.ref_logp, .* in opd and opsd"),
        ("truncated_entropy_bonus", {}, "needs Tokens.truncated_entropy, which prime-rl's loss does not get"),
        ("ppo", {"aggregation": "fixed"}, "aggregation: prime-rl averages over the trained tokens"),
        ("gspo", {"gspo.denominator": "kept"}, "gspo.denominator: prime-rl averages"),
        ("ppo", {"eps": 0.2}, "no part of 'ppo' has the hyperparameter 'eps'"),
        ("ppoo", {}, "ppoo"),
    ],
)
def test_what_settings_need_is_refused_too(controller, args, message):
    with pytest.raises(ValueError, match=message) as raised:
        ours.loss(sequences()[0], controller, controller_args=args)
    assert "\n" not in str(raised.value)


RULES = """
from dataclasses import dataclass
from entrostat import Controller

@dataclass(kw_only=True)
class Centred(Controller):
    def transform(self, plan, context):
        logp = context.tokens.get("logp")
        return plan.reweight(1 + 0.1 * (logp - logp.mean()))

@dataclass(kw_only=True)
class Coin(Controller):
    def transform(self, plan, context):
        return plan.drop(context.uniform("coin") < 0.5)

@dataclass(kw_only=True)
class Likely(Controller):
    def transform(self, plan, context):
        likely = context.tokens.get("logp") > -0.5
        return plan.drop(likely, **{"likely/dropped": context.share(likely)})
"""


def test_rules_of_others_are_tried(tmp_path, monkeypatch, own_controllers):
    """Also such as compute a statistic or draw without asking the context for more than they need."""
    (tmp_path / "rules_of_others.py").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    for rule, why in (("Centred", "compares the tokens"), ("Coin", "draws tokens at random")):
        with pytest.raises(ValueError, match=rf"^controller '{rule.lower()}' cannot run in prime-rl: it {why}"):
            ours.build(f"rules_of_others:{rule}")
    batch, name = sequences(), "rules_of_others:Likely"
    torch.testing.assert_close(update(batch, name)[1], mini_batch(batch, name)[1], rtol=1e-13, atol=1e-15)
    found = ours.loss(batch[1], name).metrics["entrostat/likely/dropped"]
    assert 0 < float(found) == pytest.approx(float((tokens_of(batch[1:2]).logp > -0.5).double().mean()))


def test_without_prime_rl_a_controller_is_checked(monkeypatch):
    """By the command on the page."""
    monkeypatch.setitem(sys.modules, LOSS, None)
    (code,) = re.findall(r'python -c "(from entrostat\.integrations\.prime_rl .*)"', PAGE)
    exec(code)
    with pytest.raises(ValueError, match=r"^controller 'steer' cannot run in prime-rl: it needs"):
        exec(code.replace("clip_higher+opsm", "clip_higher+steer"))


# What prime-rl may pass -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUN)
def test_what_is_not_trained_has_no_effect(name):
    expected = update(sequences(), name)
    batch = sequences()
    for i, inputs in enumerate(batch):
        inputs.trainer_logprobs.data[~inputs.loss_mask] = 100.0  # prime-rl adds 0 times log π of all tokens
        for field in ("inference_logprobs", "advantages"):
            getattr(inputs, field)[~inputs.loss_mask] = (torch.nan, torch.inf, -torch.inf)[i % 3]
    found = update(batch, name)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])
    assert all(not x.trainer_logprobs.grad[~x.loss_mask].any() for x in batch)


@pytest.mark.parametrize("name", RUN)
def test_a_sequence_without_trained_tokens_is_zero_and_runs_backward(name):
    inputs = sequences()[1]
    inputs.loss_mask = torch.zeros_like(inputs.loss_mask)
    found = ours.loss(inputs, name)
    found.loss.backward()
    assert (found.loss.item(), found.metrics) == (0, {})
    assert not inputs.trainer_logprobs.grad.any()


@pytest.mark.parametrize("name", RUN)
def test_tokens_that_the_engine_held_impossible_leave_loss_and_gradient_finite(name):
    """Ratios that overflow in float32: prime-rl's own loss is then infinite, or 0·inf."""
    batch = sequences(torch.float32)
    for inputs in batch:
        inputs.inference_logprobs[0::3] = -91.0
        inputs.inference_logprobs[1::3] = -torch.inf
    loss, gradient = update(batch, name)
    assert loss.isfinite()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_narrow_numbers_are_computed_in_float32(name, dtype):
    """The loss is that of the rounded numbers in float64."""
    batch = sequences(dtype)
    wide = sequences()
    for inputs, rounded in zip(wide, batch, strict=True):
        for field in ("trainer_logprobs", "inference_logprobs", "advantages"):
            getattr(inputs, field).data.copy_(getattr(rounded, field).detach())
    for inputs in batch:
        found = ours.loss(inputs, name)
        assert found.loss.dtype == torch.float32
        assert {(x.dtype, x.shape) for x in found.metrics.values()} == {(torch.float32, ())}
        assert not any(x.requires_grad for x in found.metrics.values())
    loss, expected = update(batch, name)[0], update(wide, name)[0]
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", ["clip_higher", "gspo", "dppo"])
def test_weights_of_prime_rls_stream_multiply_the_loss_of_each_token(name):
    """They are no part of a sequence's ratio."""
    plain, weighted = sequences(), sequences()
    for inputs in weighted:
        inputs.loss_weights = torch.linspace(0.5, 2.0, len(inputs.loss_mask), dtype=torch.float64)
    expected = update(plain, name)[1]
    factor = torch.cat([x.loss_weights[x.loss_mask] for x in weighted])
    torch.testing.assert_close(update(weighted, name)[1], expected * factor, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gspo", "'gspo' is published with aggregation 'seq-mean-token-mean': prime-rl averages over tokens"),
        ("opsm+reinforce", "'reinforce' is strictly on-policy by its rule: prime-rl's samples are of an older policy"),
        ("clip_higher", ""),
    ],
)
def test_what_is_not_as_published_is_said_once(name, message):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for inputs in sequences():
            ours.loss(inputs, name)
    assert [str(one.message) for one in said] == [message] * bool(message)


# prime-rl itself ------------------------------------------------------------------------------------------------------


def test_a_missing_prime_rl_is_told_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, LOSS, None)
    message = (
        r"^entrostat\.integrations\.prime_rl is written for prime-rl 0\.7 and 0\.8, which cannot be imported \(.*$"
    )
    with pytest.raises(ImportError, match=message):
        ours.loss(sequences()[0], "ppo")


def test_an_older_prime_rl_is_refused_and_a_newer_field_told(monkeypatch):
    of = SimpleNamespace(LossInputs=make_dataclass("LossInputs", OLDER), LossOutputs=LossOutputs)
    monkeypatch.setitem(sys.modules, LOSS, of)
    with pytest.raises(ImportError, match=r"LossInputs of this one have no loss_weights$"):
        ours.loss(sequences()[0], "ppo")
    newer = make_dataclass("LossInputs", [*LossInputs.__dataclass_fields__, "entropy"])
    monkeypatch.setitem(sys.modules, LOSS, SimpleNamespace(LossInputs=newer, LossOutputs=LossOutputs))
    with pytest.warns(UserWarning, match=r"written for prime-rl 0\.7 and 0\.8: LossInputs\.entropy is not read"):
        ours.loss(sequences()[0], "ppo")


def settings_of_the_page() -> dict[str, Any]:
    (text,) = [text for language, text in BLOCK.findall(PAGE) if language == "toml"]
    return tomllib.loads(text)["trainer"]["loss"]


def test_the_settings_of_the_page_name_the_loss_and_its_arguments():
    """They are those of the module's own example."""
    settings = settings_of_the_page()
    assert settings["type"] == "custom"
    module, _, function = settings["import_path"].rpartition(".")
    found = getattr(importlib.import_module(module), function)(sequences()[1], **settings["kwargs"])
    assert found.loss.isfinite()
    for line in (f'import_path = "{settings["import_path"]}"', f'controller = "{settings["kwargs"]["controller"]}"'):
        assert line in ours.__doc__


@pytest.mark.skipif(theirs is None, reason="prime-rl is not on PyPI: put a checkout on the path")
@pytest.mark.parametrize(
    ("name", "args", "config"),
    [("dppo", {"delta": 0.2, "tau": 0.001, "ratio_max": torch.inf}, "DefaultLossConfig"), ("ipo", {}, "IPOLossConfig")],
)
def test_with_prime_rls_numbers_it_has_the_gradient_of_prime_rls_own(name, args, config):
    batch = sequences()
    loss, metrics = through_prime_rl(batch, getattr(configs, config)())
    loss.backward()
    expected = torch.cat([x.trainer_logprobs.grad[x.loss_mask] for x in batch])
    found = update(sequences(), name, **args)[1]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-15)
    assert metrics["is_masked"].any()
