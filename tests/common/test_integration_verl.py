"""verl's policy losses, called as verl calls them, and through verl itself."""

import importlib
import math
import re
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.ranks import start_ranks

import entrostat as es
from entrostat.integrations.splitting import compares_tokens

core_algos = pytest.importorskip("verl.trainer.ppo.core_algos", reason="pip install --no-deps -c constraints.txt verl")
ours = importlib.import_module("entrostat.integrations.verl")
verl_version = importlib.import_module("entrostat.integrations.verl_version")
verl_settings = importlib.import_module("entrostat.integrations.verl_settings")
DOCS = Path(__file__).parents[2] / "docs"
ROWS, LENGTH, GROUP = 12, 9, 3
SETTINGS: dict[str, dict[str, Any]] = {
    "stare": {"target": 3.0},  # above the entropy that the loops are told
    "clip_cov": {"k": 0.1, "omega_low": -9.0, "omega_high": 9.0},
    "clip_b": {"mu": 0.5},
    "clip_v": {"mu": 0.0, "k": 0.02},
    "kl_cov": {"k": 0.1},
    "quadrant_mask": {"exploration": 0.0, "share": 1.0},
    "random_positive_clip": {"k": 0.3},
    "ppl_advantage": {"alpha": 0.1},
}


SPEC = importlib.util.spec_from_file_location("verl_drop_in", DOCS.parent / "benchmarks" / "verl_drop_in.py")
drop_in = importlib.util.module_from_spec(SPEC)
sys.modules["verl_drop_in"] = drop_in
SPEC.loader.exec_module(drop_in)


@dataclass
class ActorConfig:
    """The part of verl's actor configuration that reaches a policy loss."""

    policy_loss: Any
    loss_agg_mode: str = "token-mean"
    global_batch_info: dict = field(default_factory=dict)
    rollout_n: int = GROUP


BONUSES = ("entropy", "truncated_entropy")
AVAILABLE = [
    name
    for name in es.list_controllers()
    if es.make(name).needs <= verl_settings.AVAILABLE and es.make(name).temperature is None
]
WHOLE_GROUPS = [name for name in AVAILABLE if "group_id" in es.make(name).needs]
REFUSED = [name for name in es.list_controllers() if name not in AVAILABLE]


@pytest.fixture(autouse=True)
def fresh():
    """Losses keep a controller for a process's life; a test is one."""
    for loss in ours.LOSSES.values():
        loss.settings, loss.fields = None, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def batch(dtype=torch.float64) -> dict[str, torch.Tensor]:
    """A padded mini-batch, the rollout policy a little off the current one."""
    g = torch.Generator().manual_seed(3)
    log_prob = -torch.rand(ROWS, LENGTH, generator=g, dtype=torch.float64) * 3
    old = (log_prob + 0.2 * torch.randn(ROWS, LENGTH, generator=g, dtype=torch.float64)).clamp(max=0)
    advantages = torch.randn(ROWS, 1, generator=g, dtype=torch.float64).expand(ROWS, LENGTH)
    lengths = torch.randint(1, LENGTH + 1, (ROWS, 1), generator=g)
    mask = torch.arange(LENGTH) < lengths
    numbers = {"old_log_prob": old, "log_prob": log_prob, "advantages": advantages}
    return {key: value.to(dtype) for key, value in numbers.items()} | {"response_mask": mask}


def fields(rows: torch.Tensor | slice = slice(None)) -> dict[str, torch.Tensor]:
    """Fields that the actor adds for the responses `rows`: entropies, moments, groups and rewards."""
    g = torch.Generator().manual_seed(4)
    names = ("entropy", "old_entropy", "truncated_entropy", "ref_logp", "rollout_logp")
    made = {name: torch.rand(ROWS, LENGTH, generator=g, dtype=torch.float64) * 2 for name in names}
    made |= {"ref_logp": -made["ref_logp"], "rollout_logp": -made["rollout_logp"]}
    p = torch.rand(ROWS, LENGTH, 5, generator=g, dtype=torch.float64).softmax(-1)
    made |= {"s2": (p * p).sum(-1), "s2l": (p * p * p.log()).sum(-1), "s2ll": (p * p.log()).square().sum(-1)}
    made |= {"reward": torch.randint(0, 2, (ROWS,), generator=g).double(), "group_id": torch.arange(ROWS) // GROUP}
    return {name: value[rows] for name, value in made.items()}


def actor(name: str, controller_args=None, mode="token-mean", ranks=1, **settings) -> ActorConfig:
    """As verl sets it up: the mini-batch's totals are known to every micro-batch."""
    data = batch()
    policy_loss = ours.PolicyLossConfig(
        loss_mode=f"entrostat/{name}",
        controller_args=SETTINGS.get(name, {}) if controller_args is None else controller_args,
        **({"updates_per_rollout": 0} | settings),
    )
    info = {
        "dp_size": ranks,
        "batch_num_tokens": int(data["response_mask"].sum()),
        "global_batch_size": ROWS,
        "loss_scale_factor": None,
    }
    return ActorConfig(policy_loss, mode, info)


def call(name: str, config: ActorConfig, rows: torch.Tensor | slice = slice(None), weights=None, first=0):
    """∂loss/∂log π of a micro-batch (b, T), the loss, and the metrics. first: the process's first row."""
    data = {key: value[rows] for key, value in batch().items()}
    data["log_prob"] = data["log_prob"].detach().requires_grad_()
    ours.LOSSES[name].fields = fields(rows)
    if ours.LOSSES[name].mini_batch is not None:
        ours.LOSSES[name].fields["row"] = torch.arange(ROWS)[rows] - first
    for bonus in BONUSES:
        ours.LOSSES[name].fields[bonus].requires_grad_()
    loss, metrics = core_algos.POLICY_LOSS_REGISTRY[f"entrostat/{name}"](
        old_log_prob=data["old_log_prob"],
        log_prob=data["log_prob"],
        advantages=data["advantages"],
        response_mask=data["response_mask"],
        loss_agg_mode=config.loss_agg_mode,
        config=config,
        rollout_is_weights=weights,
    )
    if loss.requires_grad:
        loss.backward()
    return data["log_prob"].grad, loss.detach(), metrics


def test_every_controller_is_registered():
    names = {f"entrostat/{name}" for name in (*es.list_controllers(), "chain")}
    assert names == {name for name in core_algos.POLICY_LOSS_REGISTRY if name.startswith("entrostat/")}


def test_grpo_by_hand():
    """Two responses: ratios 1.5 (clipped at A > 0) and 0.5 (not clipped at A > 0), and 0.5 (clipped at A < 0)."""
    old = torch.tensor([[-1.0, -1.0], [-1.0, -7.0]], dtype=torch.float64)
    log_prob = old + torch.tensor([[1.5, 0.5], [0.5, 3.0]], dtype=torch.float64).log()
    log_prob.requires_grad_()
    mask = torch.tensor([[1, 1], [1, 0]])
    info = {"dp_size": 1, "batch_num_tokens": 6, "global_batch_size": 2, "loss_scale_factor": None}
    loss, metrics = ours.LOSSES["grpo"](
        old_log_prob=old,
        log_prob=log_prob,
        advantages=torch.tensor([[2.0, 2.0], [-4.0, -4.0]], dtype=torch.float64),
        response_mask=mask,
        config=ActorConfig(ours.PolicyLossConfig(loss_mode="entrostat/grpo"), "token-mean", info),
        rollout_is_weights=torch.tensor([[1.0, 3.0], [1.0, 1.0]], dtype=torch.float64),
    )
    assert loss.item() == pytest.approx((-2 * 1.2 - 3 * 2 * 0.5 + 4 * 0.8) / 6)
    loss.backward()
    expected = torch.tensor([[0.0, -3 * 2 * 0.5 / 6], [0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(log_prob.grad, expected)
    assert metrics["actor/pg_clipfrac"] == pytest.approx(2 / 3)
    assert metrics["actor/ppo_kl"] == pytest.approx(-(math.log(1.5) + 2 * math.log(0.5)) / 3)


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("name", AVAILABLE)
def test_through_verls_engine_and_ppo_loss_it_is_the_plan(name, tools):
    """Loss and gradient in the parameters of a real model, with entropies and moments from verl's code."""
    found = drop_in.compare(name, tools=tools)
    assert found.loss < 1e-14
    assert found.gradient < 1e-14


@pytest.mark.parametrize("name", [name for name in AVAILABLE if "turn_id" not in es.make(name).needs])
def test_what_a_tool_wrote_changes_nothing(name):
    """The batch with other tokens between those of each response, whatever their numbers are."""
    config, loss = actor(name, mode=es.make(name).surrogate.aggregation), ours.LOSSES[name]
    given, found = (batch(), fields()), []
    place = (
        torch.rand(ROWS, 2 * LENGTH, generator=torch.Generator().manual_seed(5)).argsort(1)[:, :LENGTH].sort(1).values
    )
    for wide in (False, True):

        def spread(x: torch.Tensor, wide: bool = wide) -> torch.Tensor:
            if x.ndim < 2 or not wide:
                return x.clone()
            empty = torch.full((ROWS, 2 * LENGTH), 0 if x.dtype == torch.bool else torch.nan, dtype=x.dtype)
            return empty.scatter(1, place, x)

        loss.settings = None
        loss.prepare(config, config.loss_agg_mode)
        ours.observe(2.0, total_steps=10, planned={"siren/entropy": 9.0, "siren/updates": 1.0})
        data, more = ({key: spread(x) for key, x in held.items()} for held in given)
        for x in (data["log_prob"], *(more[bonus] for bonus in BONUSES)):
            x.requires_grad_()
        loss.fields = more
        loss(**data, loss_agg_mode=config.loss_agg_mode, config=config)[0].backward()
        found.append(data["log_prob"].grad)
    torch.testing.assert_close(found[1].gather(1, place), found[0], rtol=1e-12, atol=1e-15)
    assert found[0].abs().sum() > 0


def test_what_a_tool_wrote_parts_the_turns():
    """Two responses of one prompt: turns of entropies 1, 3 and 2, weighted 1, ¼ and ½ over their mean 7/12."""
    config = actor("aem", {"lam": math.log(4)})
    config.rollout_n = 2
    config.global_batch_info |= {"batch_num_tokens": 4, "global_batch_size": 2}
    mask = torch.tensor([[1, 1, 0, 1], [1, 0, 0, 0]]).bool()
    zero = torch.zeros(2, 4, dtype=torch.float64)
    entropy = torch.tensor([[0.5, 1.5, 9.0, 3.0], [2.0, 9.0, 9.0, 9.0]], dtype=torch.float64)
    loss, log_prob = ours.LOSSES["aem"], zero.clone().requires_grad_()
    loss.fields = {"entropy": entropy, "group_id": torch.tensor([5, 5])}
    loss(zero, log_prob, zero + 1, mask, "token-mean", config)[0].backward()
    expected = torch.tensor([[12, 12, 0, 3], [6, 0, 0, 0]], dtype=torch.float64) / -28
    torch.testing.assert_close(log_prob.grad, expected)


@pytest.mark.parametrize(
    ("spec", "args"),
    [
        ("clip_higher+entropy_bonus", {"coef": "linear(0.1, 0.02, 4)", "eps_high": "cosine(0.3, 0.2, 4)"}),
        ("thermostat", {"mode": "both", "target": 3.0}),
        ("opefo", {"estimator": "exact"}),
        ("truncated_entropy_bonus", {"top_k": 0, "top_p": 0.7, "coef": 0.1}),
    ],
)
def test_chains_schedules_and_modes_are_the_plan_too(spec, args):
    found = drop_in.compare(spec, args)
    assert found.loss < 1e-14
    assert found.gradient < 1e-14


def gradients(name: str, config: ActorConfig, rows: torch.Tensor | slice = slice(None), first=0) -> torch.Tensor:
    """Gradient of the loss in log π and in the entropies, (b, T, 3)."""
    found = [call(name, config, rows, first=first)[0]]
    found += [ours.LOSSES[name].fields[bonus].grad for bonus in BONUSES]
    return torch.stack([torch.zeros_like(found[0]) if grad is None else grad for grad in found], -1)


def micro_batches_change(name: str) -> bool:
    """Return True if a cut into four micro-batches changes the gradient of the mini-batch; closed loops have moved."""
    config = actor(name, mode=es.make(name).surrogate.aggregation)
    call(name, config)
    ours.observe(2.0, total_steps=10, planned={"siren/entropy": 9.0, "siren/updates": 1.0})
    whole = gradients(name, config)
    parts = torch.cat([gradients(name, config, rows) for rows in torch.arange(ROWS).split(GROUP)])
    return bool((parts - whole).abs().max() > 1e-9 * whole.abs().max())


def test_the_table_in_the_docs_is_what_is_measured():
    """Rules that a cut changes, or that compare the responses to a prompt; the actor's own trial finds the same."""
    rows = re.findall(r"^\| `(\w+)` \| (no|yes|not available) \|", (DOCS / "verl.md").read_text(), flags=re.M)
    measured = dict.fromkeys(REFUSED, "not available")
    for name in AVAILABLE:
        compares = micro_batches_change(name)
        assert compares_tokens(ours.LOSSES[name].controller) == (compares or name in WHOLE_GROUPS), name
        measured[name] = "yes" if compares or name in WHOLE_GROUPS else "no"
    assert dict(rows) == measured
    assert set(measured.values()) == {"no", "yes", "not available"}


def test_a_rule_whose_thresholds_no_token_of_the_trial_meets_compares_tokens():
    assert compares_tokens(es.make("clip_cov", omega_low=50.0, omega_high=90.0))
    assert not compares_tokens(es.make("clip_higher+entropic"))


def planned_together(name: str, config: ActorConfig, parts: list[torch.Tensor], first=0) -> list[torch.Tensor]:
    """Gradients of micro-batches, (b, T, 3) each, whose tokens were collected for one plan, as the actor does it."""
    loss = ours.LOSSES[name]
    loss.mini_batch = ours.MiniBatch()
    try:
        for rows in parts:
            assert call(name, config, rows, first=first)[2] == {}
        loss.plan_mini_batch(config, sum(map(len, parts)))
        return [gradients(name, config, rows, first) for rows in parts]
    finally:
        loss.mini_batch = None


@pytest.mark.parametrize("name", AVAILABLE)
def test_micro_batches_that_are_planned_together_are_exact(name):
    """In any order and of any size; the draws, the changes planned and the number of updates are those of one plan."""
    config, loss = actor(name, mode=es.make(name).surrogate.aggregation), ours.LOSSES[name]
    found = []
    for _ in range(2):
        loss.settings = None
        loss.prepare(config, config.loss_agg_mode)
        ours.observe(2.0, total_steps=10, planned={"siren/entropy": 9.0, "siren/updates": 1.0})
        if not found:
            found.append((gradients(name, config), loss.calls, loss.planned))
        else:
            order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(1))
            parts = planned_together(name, config, list(order.split([5, 1, 4, 2])))
            found.append((torch.cat(parts)[order.argsort()], loss.calls, loss.planned))
    (whole, *counts), (cut, *others) = found
    torch.testing.assert_close(cut, whole, rtol=1e-9, atol=1e-12)
    assert others[0] == counts[0] == 1
    assert others[1] == pytest.approx(counts[1])


@pytest.mark.parametrize("name", REFUSED)
def test_what_verl_cannot_give_is_named(name):
    said = r"needs (Tokens\.\w+(, )?)+, which verl does not provide; \w+|sets the sampling temperature .* verl keeps"
    with pytest.raises(ValueError, match=said):
        ours.PolicyLossConfig(loss_mode=f"entrostat/{name}")


@pytest.mark.parametrize(
    ("name", "missing", "message"),
    [
        ("steer", "entropy", "train with verl's ActorRolloutRefWorker"),
        ("entropy_ratio_clip", "old_entropy", "leave algorithm.rollout_correction.bypass_mode off"),
        ("rollout_correction", "rollout_logp", "set actor_rollout_ref.rollout.calculate_log_probs=True"),
        ("truncated_entropy_bonus", "truncated_entropy", "only verl's FSDP engine"),
    ],
)
def test_a_batch_without_a_field_is_told(name, missing, message):
    data, loss = batch(), ours.LOSSES[name]
    loss.fields = {key: value for key, value in fields().items() if key != missing}
    with pytest.raises(ValueError, match=rf"needs Tokens\.{missing}, which this batch of verl .*{message}"):
        loss(**data, config=actor(name))


@pytest.mark.parametrize("name", WHOLE_GROUPS)
def test_a_group_in_two_micro_batches_is_told(name):
    """The second of its two micro-batches has one response of the group, the first all but one."""
    message = (
        r"^controller '\w+\+?\w*' needs all 3 responses to a prompt [^\n]*policy_loss\.per_micro_batch=False[^\n]+$"
    )
    for rows in (torch.arange(5), torch.arange(5, 9)):
        with pytest.raises(ValueError, match=message):
            call(name, actor(name), rows)


def test_the_docs_say_who_needs_whole_groups():
    page = (DOCS / "verl.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| yes \| the responses to a prompt", page, flags=re.M)
    assert sorted(rows) == sorted(WHOLE_GROUPS)
    *others, last = (f"`{name}`" for name in sorted(WHOLE_GROUPS))
    assert f"{', '.join(others)} and {last} compare the responses to a prompt" in page


def test_verls_correction_beside_ours_is_told():
    with pytest.raises(ValueError, match=r"set algorithm\.rollout_correction\.rollout_is=null"):
        call("rollout_correction", actor("rollout_correction"), weights=torch.ones(ROWS, LENGTH))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss_mode": "entrostat/chain"}, "needs policy_loss.controller"),
        ({"loss_mode": "entrostat/ppo", "controller_args": {"aggregation": "fixed"}}, "actor.loss_agg_mode decides"),
        ({"loss_mode": "entrostat/ppo", "controller_args": {"eps": 1}}, "has the hyperparameter 'eps'"),
        ({"loss_mode": "entrostat/ppo", "controller_preset": "best"}, "unknown preset 'best'"),
        ({"loss_mode": "entrostat/kl_ref", "controller_args": {"reset_every": 3}}, "kl_ref: verl never .* reset_every"),
    ],
)
def test_configuration_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        ours.PolicyLossConfig(**settings)


def test_metrics_of_a_micro_batch_without_tokens():
    none = torch.zeros(2, 3, dtype=torch.float64)
    metrics = ours.LOSSES["grpo"](
        old_log_prob=none, log_prob=none, advantages=none, response_mask=none.long(), config=actor("grpo")
    )[1]
    assert metrics == {"actor/ppo_kl": 0, "actor/pg_clipfrac": 0, "actor/pg_clipfrac_lower": 0}


@pytest.mark.parametrize(
    ("name", "options", "policy", "message"),
    [
        ("clip_higher", {"clip_ratio_high": 0.28}, {}, r"actor\.clip_ratio_high: set eps_high in policy_loss\.contr"),
        ("grpo", {"clip_ratio_low": 0.1}, {}, r"actor\.clip_ratio_low: set eps_low in policy_loss\.controller_args"),
        ("grpo", {"clip_ratio": 0.1}, {}, r"actor\.clip_ratio: set eps_low and eps_high"),
        ("grpo", {"clip_ratio_c": 10.0}, {}, r"actor\.clip_ratio_c: set dual_clip"),
        ("sapo", {"tau_neg": 1.1}, {}, r"actor\.tau_neg: set tau_negative of sapo"),
        ("steer", {"entropy_coeff": 0.01}, {}, r"actor\.entropy_coeff: add entropy_bonus to the controller"),
        ("kl_cov", {}, {"kl_cov_ratio": 0.02}, r"actor\.policy_loss\.kl_cov_ratio: set k of kl_cov"),
        ("kl_cov", {}, {"ppo_kl_coef": 1.0}, r"actor\.policy_loss\.ppo_kl_coef: set beta of kl_cov"),
        ("dro", {}, {"dro_beta": 0.1}, r"actor\.policy_loss\.dro_beta: set beta of dro in policy_loss\.contr"),
        ("clip_cov", {}, {"clip_cov_lb": 0.5}, r"actor\.policy_loss\.clip_cov_lb: set omega_low of clip_cov"),
        ("kl_ref", {}, {}, r"needs Tokens\.ref_logp, .*set actor\.use_kl_loss=True and actor\.kl_loss_coef=0"),
        ("kl_ref", {"use_kl_loss": True}, {}, r"replaces verl's KL term: set actor\.kl_loss_coef=0"),
        ("thermostat", {"use_fused_kernels": True}, {}, r"only verl's FSDP engine without fused kernels"),
    ],
)
def test_settings_that_the_controller_replaces_are_refused(name, options, policy, message):
    """They are refused while verl reads its configuration, before anything is loaded, by verl's class and by ours."""
    given = {"strategy": "fsdp", "rollout_n": 1, "ppo_micro_batch_size_per_gpu": 1, **options}
    for kind in (ours.PolicyLossConfig, verl_settings.VerlPolicyLossConfig):
        with pytest.raises(ValueError, match=message):
            ours.ActorConfig(**given, policy_loss=kind(loss_mode=f"entrostat/{name}", **policy))
        if not message.startswith(("needs", "replaces", "only")):
            assert ours.ActorConfig(**given, policy_loss=kind(loss_mode="vanilla", **policy))


def test_verls_own_losses_are_left_alone():
    assert ours.PolicyLossConfig(loss_mode="vanilla").loss_mode == "vanilla"


def test_another_aggregation_than_the_published_one_warns():
    with pytest.warns(UserWarning, match="published with loss_agg_mode 'seq-mean-token-mean', here it is 'token-mean'"):
        call("gspo", actor("gspo"))


def test_arguments_that_hydra_nests_are_those_of_a_part():
    """A command line with controller_args.kl_cov.k=0.1."""
    nested = ours.PolicyLossConfig(
        loss_mode="entrostat/chain", controller="clip_higher+kl_cov", controller_args={"kl_cov": {"k": 0.1}}
    )
    flat = ours.PolicyLossConfig(
        loss_mode="entrostat/chain", controller="clip_higher+kl_cov", controller_args={"kl_cov.k": 0.1}
    )
    assert verl_settings.Settings.of("chain", nested) == verl_settings.Settings.of("chain", flat)


def test_a_chain_from_the_configuration():
    config = actor("chain", {"k": 0.1}, controller="clip_higher+kl_cov")
    found, _, metrics = call("chain", config)
    expected = es.make("clip_higher+kl_cov", k=0.1)
    assert repr(ours.LOSSES["chain"].controller) == repr(expected)
    assert not torch.equal(found, call("clip_higher", actor("clip_higher"))[0])
    assert all(isinstance(value, float) for value in metrics.values())


def test_draws_change_from_update_to_update():
    config = actor("clip_cov")
    first, second = (call("clip_cov", config)[0] for _ in range(2))
    assert not torch.equal(first, second)
    ours.LOSSES["clip_cov"].settings = None
    assert torch.equal(call("clip_cov", config)[0], first)


# Closed loops ---------------------------------------------------------------------------------------------------------


def test_a_closed_loop_that_nobody_feeds_is_told():
    config = actor("entropic", updates_per_rollout=None)
    with pytest.raises(ValueError, match=r"a closed loop.*set policy_loss\.updates_per_rollout=0 and call"):
        call("entropic", config)
    ours.observe(0.7)
    call("entropic", config)


def test_planned_changes_reach_the_next_observation():
    """Two micro-batches of an update count as one, by their share of the responses."""
    config, loss = actor("thermostat"), ours.LOSSES["thermostat"]
    halves = torch.arange(ROWS).split(ROWS // 2)
    flows = [call("thermostat", config, rows)[2]["entrostat/thermostat/flow"] for rows in halves]
    assert loss.planned["thermostat/updates"] == pytest.approx(1.0)
    assert loss.planned["thermostat/flow"] == pytest.approx(sum(flows) / 2)
    ours.observe(1.0)
    assert loss.planned == {}
    assert loss.controller.state_dict()["thermostat"]["updates"] == 1


def test_a_schedule_moves_from_rollout_to_rollout():
    """With the number of the last observed rollout; a restored state goes on."""
    config, seen = actor("clip_higher", {"eps_high": "linear(0.28, 0.2, 4)"}), []
    for _ in range(4):
        ours.LOSSES["clip_higher"].prepare(config, "token-mean")
        ours.observe(1.0)
        seen.append(call("clip_higher", config)[2]["entrostat/clip_higher/eps_high"])
    assert seen == pytest.approx([0.28, 0.26, 0.24, 0.22])
    state = ours.state_dict()
    ours.LOSSES["clip_higher"].settings = None
    ours.load_state_dict(state, config)
    ours.observe(1.0)
    assert call("clip_higher", config)[2]["entrostat/clip_higher/eps_high"] == pytest.approx(0.2)


def test_observe_moves_the_controllers_in_use_and_state_is_restored_exactly():
    config = actor("entropic", {"tau": 0.0})
    first = call("entropic", config)[0]
    ours.observe(0.7)
    ours.observe(0.9, total_steps=10)
    loss = ours.LOSSES["entropic"]
    assert loss.rollouts == 2
    moved = call("entropic", config)[0]
    assert not torch.equal(moved, first)
    state = ours.state_dict()
    assert set(state) == {"entropic"}
    loss.settings = None
    assert torch.equal(call("entropic", config)[0], first)
    loss.settings = None
    ours.load_state_dict(state, config)
    assert (loss.rollouts, loss.calls) == (2, 2)
    assert torch.equal(call("entropic", config)[0], moved)


# Ranks ----------------------------------------------------------------------------------------------------------------

RANKED = ["clip_cov", "kl_cov", "ppl_advantage", "gspo", "entropic", "opefo", "edge", "thermostat"]


def ranked(ranks: int, rows, size: int = ROWS) -> dict[str, torch.Tensor]:
    """Gradients of this rank's rows, in micro-batches of this size, and the states of closed loops."""
    found, first = {}, 0 if isinstance(rows, slice) else int(rows[0])
    for name in RANKED:
        config = actor(name, mode=es.make(name).surrogate.aggregation, ranks=ranks)
        if size < ROWS:
            ours.LOSSES[name].prepare(config, config.loss_agg_mode)
            found[name] = torch.cat(planned_together(name, config, list(rows.split(size)), first))[..., 0]
        else:
            found[name] = call(name, config, rows)[0]
        ours.LOSSES[name].observe(0.7)
        for state in ours.LOSSES[name].controller.state_dict().values():
            found |= {f"{name}/{key}": value for key, value in state.items()}
    return found


def rank_worker(rank: int, world: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world)
    torch.set_num_threads(1)
    rows = torch.arange(ROWS).split(ROWS // world)[rank]
    for size in (2, ROWS):
        for loss in ours.LOSSES.values():
            loss.settings = None
        torch.save(ranked(world, rows, size), f"{folder}/{rank}_{size}.pt")
    dist.destroy_process_group()


@pytest.mark.slow
def test_one_and_three_micro_batches_on_each_of_two_ranks_are_exact(tmp_path):
    """verl averages gradients over ranks, so that each must be twice its share."""
    start_ranks(2, rank_worker, str(tmp_path))
    whole = ranked(1, slice(None))
    for size in (ROWS, 2):
        parts = [torch.load(tmp_path / f"{rank}_{size}.pt") for rank in range(2)]
        for key, expected in whole.items():
            if "/" in key:  # state of a closed loop
                assert all(torch.allclose(part[key].double(), expected.double(), rtol=1e-12) for part in parts), key
            else:
                found = torch.cat([part[key] for part in parts]) / 2
                torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


# Loading --------------------------------------------------------------------------------------------------------------


def test_through_verls_own_ppo_loss():
    """The script of the docs through verl's configuration, and verl's loss over a TensorDict of nested tensors."""
    from hydra import compose, initialize_config_dir
    from tensordict import TensorDict
    from verl.utils import tensordict_utils as tu
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.utils.losses import ppo_loss

    verl = importlib.import_module("verl")
    script = re.search(r"```bash\n(.*?)```", (DOCS / "verl.md").read_text(), flags=re.S).group(1)
    overrides = re.findall(r"^ +(\+?[\w.]+=\S+)", script, flags=re.M)
    assert len(overrides) > 8
    with initialize_config_dir(str(Path(verl.__file__).parent / "trainer/config"), version_base=None):
        composed = compose("ppo_trainer", overrides=overrides)
    config = omega_conf_to_dataclass(composed.actor_rollout_ref.actor)
    data = batch()
    lengths = data["response_mask"].sum(-1).tolist()

    def nested(x: torch.Tensor) -> torch.Tensor:
        return torch.nested.nested_tensor([row[:n] for row, n in zip(x, lengths, strict=True)], layout=torch.jagged)

    # One prompt token before each response: its logits give the first response token's log-probability.
    full = [torch.cat([row[:n], row.new_zeros(1)]) for row, n in zip(data["log_prob"], lengths, strict=True)]
    log_probs = torch.nested.nested_tensor(full, layout=torch.jagged).requires_grad_()
    ids = [torch.ones(n, dtype=torch.int64) for n in lengths]
    td = TensorDict(
        {
            "prompts": torch.nested.nested_tensor([torch.ones(1, dtype=torch.int64)] * ROWS, layout=torch.jagged),
            "responses": torch.nested.nested_tensor(ids, layout=torch.jagged),
            "response_mask": nested(data["response_mask"].long()),
            "old_log_probs": nested(data["old_log_prob"]),
            "advantages": nested(data["advantages"]),
        },
        batch_size=[ROWS],
    )
    tu.assign_non_tensor(td, dp_size=1, batch_num_tokens=sum(lengths), global_batch_size=ROWS)
    loss, metrics = ppo_loss(config, {"log_probs": log_probs}, td)
    assert config.policy_loss.loss_mode == "entrostat/chain"
    expected = call("chain", actor("chain", {"k": 0.002}, controller="clip_higher+kl_cov"))[1]
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert "actor/pg_clipfrac" in metrics


def test_the_five_lines_for_older_verl_are_its_loss():
    """At the end of a file with verl's old function: with GRPO's rule it is that function, to the last metric."""
    (code,) = re.findall(r'^```python title="core_algos.py"\n(.*?)^```', (DOCS / "verl.md").read_text(), re.M | re.S)
    old = core_algos.compute_policy_loss
    scope = {"compute_policy_loss": old}
    exec(code.replace('es.make("clip_cov", k=0.002)', 'es.make("grpo", dual_clip=3.0)'), scope)
    found = {}
    for name, loss in (("ours", scope["compute_policy_loss"]), ("verl's", old)):
        data = batch()
        data["log_prob"].requires_grad_()
        value, *metrics = loss(**data, cliprange=0.2, clip_ratio_c=3.0)
        value.backward()
        found[name] = [value.detach(), data["log_prob"].grad, *metrics]
    for ours, theirs in zip(found["ours"], found["verl's"], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    scope = {"compute_policy_loss": old}
    exec(code, scope)
    data = batch()
    data["log_prob"].requires_grad_()
    scope["compute_policy_loss"](**data, cliprange=0.2)[0].backward()
    assert data["log_prob"].grad.isfinite().all()
