"""The metrics on tokens whose numbers are worked out by hand."""

import json
import math

import pytest
import torch
from helpers import sampled_tokens

from entrostat import StepStats, Tokens, diagnose, make, policy_stats
from entrostat.diagnostics import EntropyTrace, merge, to_floats

F64 = torch.float64


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=F64)


def test_ratios_clipping_and_divergence():
    """Ratios 2, 1, ½, 1.25 and 4 with clip 0.2 / 0.2 and dual clip 3."""
    ratio = tensor(2, 1, 0.5, 1.25, 4)
    tokens = Tokens(logp=ratio.log() - 5, old_logp=tensor(-5, -5, -5, -5, -5), advantage=tensor(1, 1, -1, -1, -1))
    found = diagnose(tokens, make("ppo", dual_clip=3.0).plan(tokens))
    assert found["ratio/min"] == pytest.approx(0.5)
    assert found["ratio/max"] == pytest.approx(4)
    assert found["ratio/mean"] == pytest.approx(8.75 / 5)
    assert found["clip/high"] == 1 / 5
    assert found["clip/low"] == 1 / 5
    assert found["clip/dual"] == 1 / 5
    assert found["clip_fraction"] == 3 / 5
    assert found["kl_to_rollout"] == pytest.approx(-math.log(2 * 0.5 * 1.25 * 4) / 5)


def test_a_token_without_advantage_is_never_clipped():
    tokens = Tokens(logp=tensor(-1, -1, -1), old_logp=tensor(-5, -5, 0), advantage=tensor(0, -1, 0))
    found = diagnose(tokens, make("ppo", dual_clip=3.0).plan(tokens))
    assert found["clip_fraction"] == found["clip/dual"] == pytest.approx(1 / 3)


def test_a_negative_weight_turns_the_side_that_is_clipped():
    ratio, old = tensor(0.5, 0.5, 2, 2, 1), tensor(-5, -5, -5, -5, -5)
    tokens = Tokens(logp=ratio.log() - 5, old_logp=old, advantage=tensor(1, 1, -1, 1, 1))
    plan = make("ppo").plan(tokens)
    assert diagnose(tokens, plan)["clip_fraction"] == 1 / 5
    found = diagnose(tokens, plan.reweight(tensor(-1, -1, -1, 0, -1)))
    assert [found[name].item() for name in ("clip/low", "clip/high", "clip/dual")] == [2 / 5, 2 / 5, 0]


def test_log_probabilities_of_the_update_may_differ_from_the_plan():
    tokens = Tokens(logp=tensor(-1, -1), old_logp=tensor(-1, -1), advantage=tensor(1, -1))
    plan = make("ppo").plan(tokens)
    found = diagnose(tokens, plan, tensor(-1 + math.log(1.5), -1))
    assert found["clip/high"] == 0.5
    assert found["ratio/max"] == pytest.approx(1.5)
    assert diagnose(tokens, plan)["clip/high"] == 0


def test_covariance_and_the_mean_of_its_largest():
    """Five thousand tokens: lp −2 or 0 around the mean −1, A = 1..2500 with lp 0 and −1..−2500 with lp −2."""
    size = torch.arange(1, 2501, dtype=F64)
    logp = torch.cat([torch.zeros(2500, dtype=F64), torch.full((2500,), -2.0, dtype=F64)])
    tokens = Tokens(logp=logp, old_logp=logp, advantage=torch.cat([size, -size]))
    found = diagnose(tokens, make("ppo").plan(tokens))
    assert found["covariance/mean"] == pytest.approx(1250.5)
    # each value occurs twice: the top 1 of 5000 is 2500; the top 10 are 2500, 2500, … 2496, 2496
    assert found["covariance/top_0.02%"] == pytest.approx(2500)
    assert found["covariance/top_0.2%"] == pytest.approx(2498)
    assert found["covariance/top_2%"] == pytest.approx(2475.5)
    assert found["covariance/top_20%"] == pytest.approx(2250.5)


def test_covariance_of_equal_scores_counts_k_of_them():
    tokens = Tokens(logp=tensor(-2, 0, -2, 0), old_logp=None, advantage=tensor(-1, 1, -1, 1))
    found = diagnose(tokens, make("reinforce").plan(tokens))
    assert [found[f"covariance/top_{p}%"].item() for p in ("0.02", "20")] == [1, 1]


P = tensor(0.6, 0.3, 0.1)
"""H = 0.898; f = p(log p + H) = (.232, −.092, −.140) and c = S2L + H·S2 = .128: arm 0 is likely, the others not."""


def three_arms(advantage: torch.Tensor, arm: list[int], **fields) -> Tokens:
    stats = policy_stats(P.log())
    one = {name: getattr(stats, name).expand(len(arm)) for name in ("entropy", "s2", "s2l", "s2ll")}
    return Tokens(logp=P.log()[arm], old_logp=P.log()[arm], advantage=advantage, **one, **fields)


def test_quadrants_and_their_flows():
    tokens = three_arms(tensor(1, 2, -1, -2, 0), [0, 1, 2, 0, 0])
    found = diagnose(tokens, make("ppo").plan(tokens))
    shares = [found[f"quadrant/{q}"].item() for q in ("exploitation", "exploration", "suppression", "correction")]
    assert shares == [0.2, 0.2, 0.2, 0.2]
    h = -(0.6 * math.log(0.6) + 0.3 * math.log(0.3) + 0.1 * math.log(0.1))
    f = [p * (math.log(p) + h) for p in (0.6, 0.3, 0.1)]
    c = sum(p * x for p, x in zip((0.6, 0.3, 0.1), f, strict=True))
    flows = [-1 * (f[0] - c) / 5, -2 * (f[1] - c) / 5, 1 * (f[2] - c) / 5, 2 * (f[0] - c) / 5]
    names = ("exploitation", "exploration", "suppression", "correction")
    for name, flow, sign in zip(names, flows, (-1, 1, -1, 1), strict=True):
        assert found[f"quadrant_flow/{name}"].item() == pytest.approx(flow, rel=1e-12)
        assert flow * sign > 0
    assert found["flow/policy"].item() == pytest.approx(sum(flows), rel=1e-12)
    assert found["flow/total"] == found["flow/policy"]
    assert "flow/bonus" not in found


def test_a_token_between_the_two_boundaries():
    """p = (.5, .4, .1) has e^(−H) = .389, so STEER calls .4 likely; rewarding it raises the entropy all the same."""
    p = tensor(0.5, 0.4, 0.1)
    stats = policy_stats(p.log())
    moments = {name: getattr(stats, name).expand(3) for name in ("entropy", "s2", "s2l", "s2ll")}
    tokens = Tokens(logp=p.log(), old_logp=None, advantage=tensor(1, 1, 1), **moments)
    found = diagnose(tokens, make("reinforce").plan(tokens))
    assert found["quadrant_steer/exploitation"].item() == pytest.approx(2 / 3)
    assert found["quadrant/exploitation"].item() == pytest.approx(1 / 3)
    step = 1e-6
    after = policy_stats(p.log() + step * (tensor(0, 1, 0) - p)).entropy
    assert after > stats.entropy


def test_flow_is_the_derivative_of_the_entropy():
    """One step of size 1e-6 on the logits of three policies, weights and bonus included, against flow/total."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 5, generator=generator, dtype=F64)
    action = torch.tensor([[0], [3], [1]])
    stats = policy_stats(logits)
    moments = {name: getattr(stats, name) for name in ("entropy", "s2", "s2l", "s2ll")}
    logp = stats.logp.gather(-1, action)[:, 0]
    tokens = Tokens(logp=logp, old_logp=logp - 0.1, advantage=tensor(1, -2, 0.5), **moments)
    controller = make("steer+entropy_bonus", coef=0.3)
    plan = controller.plan(tokens)
    leaf = logits.clone().requires_grad_()
    now = policy_stats(leaf)
    plan.loss(now.logp.gather(-1, action)[:, 0], now.entropy).backward()
    step = 1e-6
    change = (policy_stats(logits - step * leaf.grad).entropy - policy_stats(logits + step * leaf.grad).entropy) / 2
    found = diagnose(tokens, plan)
    assert found["flow/total"].item() == pytest.approx(change.sum().item() / step, rel=1e-6)
    assert found["flow/total"] == found["flow/policy"] + found["flow/bonus"]
    assert found["flow/bonus"] > 0


def test_weights_and_what_was_touched():
    tokens = three_arms(torch.ones(10, dtype=F64), [0] * 10)
    plan = make("ppo").plan(tokens)
    plan = plan.reweight(tensor(0, 0.1, 0.25, 0.75, 0.9, 1, 1, 1.25, 2, 3))
    found = diagnose(tokens, plan.drop(torch.arange(10) == 5))
    shares = {name.removeprefix("weight/"): round(10 * v.item(), 9) for name, v in found.items() if "weight/" in name}
    assert shares == {
        **{"mean": 9.25, "negative": 0, "0": 2, "0_to_0.25": 2, "0.25_to_0.5": 0, "0.5_to_0.75": 1, "0.75_to_1": 1},
        **{"1": 1, "1_to_1.25": 1, "1.25_to_1.5": 0, "1.5_to_2": 1, "above_2": 1},
    }
    assert found["touched"] == 0.9
    assert found["dropped"] == pytest.approx(0.1)
    assert diagnose(tokens, make("ppo").plan(tokens))["touched"] == 0
    for spec in ("entropy_bonus", "entropy_advantage"):
        assert diagnose(tokens, make(spec).plan(tokens))["touched"] == 1
    one = torch.arange(10) == 3
    assert diagnose(tokens, make("ppo").plan(tokens).add_kl(one.double()))["touched"] == 0.1
    assert diagnose(tokens, make("ppo").plan(tokens).add_truncated_bonus(one.double()))["touched"] == 0.1


def test_no_total_without_all_of_its_flows():
    """The flow of a bonus takes s2ll; that of a bonus on the truncated entropy is not known."""
    tokens = three_arms(tensor(1, 2, -1), [0, 1, 2])
    plan = make("entropy_bonus").plan(tokens)
    without = diagnose(Tokens(**{**vars(tokens), "s2ll": None}), plan)
    assert without["flow/policy"] == diagnose(tokens, plan)["flow/policy"]
    assert without.keys().isdisjoint(("flow/bonus", "flow/total"))
    truncated = diagnose(tokens, plan.add_truncated_bonus(tensor(0.1)))
    assert "flow/bonus" in truncated
    assert "flow/total" not in truncated


def test_entropy_of_kept_tokens():
    tokens = Tokens(
        logp=tensor(-1, -1, -1, -1), old_logp=None, advantage=tensor(1, 1, 1, 1), entropy=tensor(1, 2, 3, 6)
    )
    plan = make("reinforce").plan(tokens).drop(torch.tensor([True, False, True, False]))
    found = diagnose(tokens, plan)
    assert found["entropy"] == 3
    assert found["entropy/kept"] == 4
    older = Tokens(**{**vars(tokens), "old_entropy": tensor(2, 4, 6, 12)})
    assert diagnose(older, plan)["entropy"] == 6


def test_the_entropy_of_no_kept_token_is_left_out():
    tokens = Tokens(logp=tensor(-1, -1), old_logp=None, advantage=tensor(1, 1), entropy=tensor(1, 2))
    found = diagnose(tokens, make("reinforce+negative_only").plan(tokens))
    assert found["dropped"] == 1
    assert "entropy/kept" not in found
    assert all(value.isfinite() for value in found.values())


def test_what_is_absent_is_left_out():
    tokens = Tokens(logp=tensor(-1, -2), old_logp=None, advantage=tensor(1, -1))
    groups = {name.partition("/")[0] for name in diagnose(tokens, make("reinforce").plan(tokens))}
    assert groups == {"touched", "dropped", "weight", "covariance"}


def test_each_run_has_its_own_numbers():
    tokens = sampled_tokens(3, 60)
    chain = make("clip_higher+steer+entropy_bonus", coef=0.1)
    together = diagnose(tokens, chain.plan(tokens))
    for run in range(3):
        alone = Tokens(**{k: v if v is None or v.ndim == 1 else v[run] for k, v in vars(tokens).items()})
        expected = diagnose(alone, chain.plan(alone))
        assert expected.keys() == together.keys()
        for name, value in expected.items():
            torch.testing.assert_close(together[name][run], value, rtol=1e-12, atol=1e-15, msg=name)


def test_merging_updates():
    updates = [
        {"ratio/min": 0.5, "ratio/max": 2.0, "flow/total": 1.0, "quadrant_flow/correction": 1.0, "clip/high": 0.0},
        {"ratio/min": 0.25, "ratio/max": 1.5, "flow/total": 2.0, "quadrant_flow/correction": -3.0, "clip/high": 1.0},
        {"clip/high": 0.5},
    ]
    assert to_floats(merge(updates)) == {
        "ratio/min": 0.25,
        "ratio/max": 2.0,
        "flow/total": 3.0,
        "quadrant_flow/correction": -2.0,
        "clip/high": 0.5,
    }
    assert to_floats({"a": 1.5, "b": tensor(1, 2)}) == {"a": 1.5, "b": 1.5}


def test_trace_smooths_and_measures():
    trace = EntropyTrace(step_size=2.0)
    assert to_floats(trace.observe(1.0)) == {"entropy": 1.0, "entropy/ema": 1.0}
    trace.expect(-0.2)
    found = to_floats(trace.observe(0.5))
    assert found["entropy/ema"] == pytest.approx(0.6 * 1.0 + 0.4 * 0.5)
    assert found["entropy_change/measured"] == -0.5
    assert found["entropy_change/predicted"] == pytest.approx(-0.4)
    unknown = to_floats(trace.observe(math.nan))
    assert math.isnan(unknown.pop("entropy"))
    assert unknown == {"entropy/ema": pytest.approx(0.8)}
    assert trace.observe(0.5).keys() == {"entropy", "entropy/ema"}


def test_trace_learns_the_step_size_and_never_predicts_what_it_has_seen():
    trace, again = EntropyTrace(), EntropyTrace()
    entropy, found = 1.0, []
    trace.observe(entropy)
    for flow in (0.1, -0.3, 0.2):
        entropy += 0.5 * flow
        trace.expect(flow)
        again.load_state_dict(trace.state_dict())
        found.append(trace.observe(entropy))
        assert again.observe(entropy) == found[-1]
    assert "entropy_change/predicted" not in found[0]
    assert [f["entropy_change/predicted"].item() for f in found[1:]] == pytest.approx([0.5 * -0.3, 0.5 * 0.2])


def test_trace_forgets_in_float64():
    trace = EntropyTrace(forgetting=0.95)
    for entropy in (1.0, 0.9, 0.7):
        trace.observe(entropy)
        trace.expect(0.3)
    assert trace.squares.item() == pytest.approx(0.3**2 * (1 + 0.95), rel=1e-15)


def test_trace_goes_through_json():
    trace, again = EntropyTrace(), EntropyTrace()
    for entropy in (1.0, 0.7, 0.6):
        trace.observe(entropy)
        trace.expect(0.1)
    again.load_state_dict(json.loads(json.dumps({key: x.tolist() for key, x in trace.state_dict().items()})))
    assert again.state_dict() == trace.state_dict()
    assert again.ema.dtype == torch.float64


def test_what_is_not_finite_does_not_stay_in_the_trace():
    trace, other = EntropyTrace(), EntropyTrace()
    for entropy, flow in ((1.0, 0.1), (math.inf, 0.1), (0.9, -math.inf), (0.8, 0.1)):
        assert trace.observe(entropy)["entropy"] == entropy
        trace.expect(flow)
        other.observe(entropy if math.isfinite(entropy) else math.nan)
        other.expect(flow if math.isfinite(flow) else None)
    assert other.state_dict() == trace.state_dict()
    assert all(x.isfinite() for x in trace.state_dict().values())


def test_state_of_the_controller_is_beside_it():
    controller = make("entropic", target=0.5)
    controller.observe(StepStats(entropy=0.75))
    assert to_floats(controller.metrics())["entropic/integral"] == 0.25
