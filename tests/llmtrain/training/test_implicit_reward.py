"""PRIME's reward model: its loss and gradient by hand, what it learns, and the advantages that come of it."""

from dataclasses import replace

import pytest
import torch

from entrostat import get_advantage
from entrostat.logs.runlog import read_metrics
from llmtrain.policy.engine import NonFiniteError, TorchEngine
from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import Policy
from llmtrain.sequences.batch import Batch
from llmtrain.settings.config import OptimConfig, PrimeConfig
from llmtrain.training.implicit_reward import ImplicitReward, optim_of
from llmtrain.training.trainer import Trainer

COUNT = 12


def policy_of(seed=0):
    return Policy(build_tiny(20, hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16, seed=seed))


def batch_of():
    g = torch.Generator().manual_seed(0)
    prompts, responses = torch.randint(1, 4, (COUNT,), generator=g), torch.randint(1, 9, (COUNT,), generator=g)
    return Batch(torch.randint(2, 20, (int((prompts + responses).sum()),), generator=g), prompts, responses)


def reward_model(lr=1e-6):
    policy = policy_of()
    optim = optim_of(PrimeConfig(lr=lr), OptimConfig(max_grad_norm=0))
    return ImplicitReward(policy, TorchEngine(policy.model, optim), beta=0.5, budget=40)


def reference_logp(batch):
    return policy_of(1).all_stats(batch, 40).logp


CORRECT = (torch.arange(COUNT) % 3 == 0).float()


def test_loss_and_gradient_are_those_of_the_formula():
    found, batch = reward_model(), batch_of()
    ref_logp = reference_logp(batch)
    metrics = found.learn(batch, ref_logp, CORRECT)
    model = policy_of()
    logp = model.token_stats(batch, torch.arange(COUNT)).logp
    gaps = (logp - ref_logp).split(batch.response_lengths.tolist())
    reward = torch.stack([0.5 * gap.sum() for gap in gaps])
    loss = -(CORRECT * reward.sigmoid().log() + (1 - CORRECT) * (-reward).sigmoid().log()).mean()
    loss.backward()
    assert metrics["prime/loss"] == pytest.approx(loss.item(), rel=1e-5)
    assert metrics["prime/accuracy"] == pytest.approx(((reward > 0) == (CORRECT > 0)).float().mean().item())
    moments = [found.engine.optimizer.state[p]["exp_avg"].flatten() for p in found.model.model.parameters()]
    mine = torch.cat(moments) / (1 - 0.9)  # of the first step: its gradient
    expected = torch.cat([p.grad.flatten() for p in model.model.parameters()])
    torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-7)
    assert metrics["prime/grad_norm"] == pytest.approx(float(expected.norm()), rel=1e-4)


def test_it_learns_the_verdicts():
    model, batch = reward_model(lr=3e-3), batch_of()
    ref_logp = reference_logp(batch)
    seen = [model.learn(batch, ref_logp, CORRECT) for _ in range(40)]
    assert seen[-1]["prime/loss"] < 0.3 * seen[0]["prime/loss"]
    assert seen[-1]["prime/accuracy"] == 1.0


def test_a_gradient_that_is_not_finite_moves_nothing():
    model, batch = reward_model(lr=1.0), batch_of()
    before = [p.detach().clone() for p in model.model.parameters()]
    with pytest.raises(NonFiniteError, match="implicit reward model"):
        model.learn(batch, torch.full((int(batch.response_lengths.sum()),), torch.nan), CORRECT)
    assert all(torch.equal(a, b) for a, b in zip(before, model.model.parameters(), strict=True))


@pytest.mark.slow
def test_a_run(small, tmp_path):
    """Tokens of a response differ in advantage once the model has learnt; a resumed run goes on with what it was."""
    config = replace(small, advantage="prime", prime=PrimeConfig(lr=1e-4, beta=0.5), steps=4)
    straight = replace(config, out=str(tmp_path / "straight"))
    Trainer(straight, small.model.path).run()
    lines = [line for line in read_metrics(straight.out) if "prime/loss" in line]
    assert len(lines) == 4
    assert lines[0]["prime/loss"] == pytest.approx(0.6931, abs=1e-3)  # the model is its reference yet
    # Each loss is of responses to other prompts, so four of them need not fall; see test_it_learns_the_verdicts.
    assert all(abs(line["prime/loss"] - 0.6931) > 1e-3 for line in lines[1:])

    halves = replace(config, steps=2, out=str(tmp_path / "halves"))
    Trainer(halves, small.model.path).run()
    resumed = Trainer(replace(halves, steps=4), halves.out, resume=True)
    resumed.rollout.update([], 2)
    found = resumed.collector.collect(2)
    experience, _ = resumed.annotator.experience(found)
    first = experience.before.advantage[: int(experience.batch.response_lengths[0])]
    assert first.unique().numel() > 1
    resumed = Trainer(replace(halves, steps=4), halves.out, resume=True)
    resumed.run()
    again = [line for line in read_metrics(halves.out) if "prime/loss" in line]
    assert [line["prime/loss"] for line in again] == [line["prime/loss"] for line in lines]


def test_nothing_is_learned_of_dropped_groups(small, tmp_path):
    trainer = Trainer(replace(small, advantage="prime", out=str(tmp_path / "run")), small.model.path)
    weights = trainer.annotator.prime.model.model.get_output_embeddings().weight
    before = weights.detach().clone()
    found = trainer.collector.collect(0)
    for dropped in (True, False):
        _, metrics = trainer.annotator.experience(replace(found, dropped=dropped))
        assert torch.equal(before, weights) is dropped
        assert ("prime/loss" in metrics) is not dropped


def test_advantages_are_those_of_entrostat(small, tmp_path):
    config = replace(small, advantage="prime", out=str(tmp_path / "run"))
    trainer = Trainer(config, small.model.path)
    found = trainer.collector.collect(0)
    with torch.no_grad():
        trainer.annotator.prime.model.model.get_output_embeddings().weight.mul_(1.1)
    experience, _ = trainer.annotator.experience(found)
    annotator = trainer.annotator  # after a step of 1e-6, which has hardly moved the reward model
    both = {"prm_logp": annotator.prime.model, "ref_logp": annotator.reference}
    told = {name: policy.all_stats(experience.batch, 256).logp for name, policy in both.items()}
    expected = get_advantage("prime")(found.reward, experience.group, response=experience.owner, **told)
    torch.testing.assert_close(experience.tokens(None).advantage, expected, rtol=1e-2, atol=1e-3)
