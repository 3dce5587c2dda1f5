"""A probed run continues as without probes, and probes measure the effect of the steps."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from same_runs import same, without_times
from transformers import AutoModelForCausalLM, GPTJConfig

from llmtrain.policy.checkpoint import checkpoints
from llmtrain.policy.model import load, save
from llmtrain.policy.policy import Policy
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.sequences.batch import Batch
from llmtrain.settings.config import EngineConfig
from llmtrain.studies.first_order import OF_WEIGHTS
from llmtrain.studies.probe import ALL, OWN
from llmtrain.studies.probe_walk import ProbedLearner, Walk
from llmtrain.training.trainer import Trainer
from llmtrain.verifiers import Verifier
from llmtrain.verifiers.countdown import ALPHABET
from llmtrain.verifiers.verdict import Verdict


class Short(Verifier):
    """Verifier that rewards short responses, so that even an untrained model gets a signal."""

    def __init__(self, longest):
        super().__init__()
        self.longest = longest

    def judge(self, responses, ground_truths):
        return [Verdict(len(response) <= self.longest, "") for response in responses]


def judged(trainer, longest=5):
    """Give the trainer a verifier that rewards responses up to a number of characters."""
    trainer.collector.task = replace(trainer.task, start_verifier=lambda: Short(longest))
    return trainer


@pytest.fixture(scope="module")
def walked(small, tmp_path_factory):
    """Return a walk with all kinds of probes, and its run."""
    config = replace(small, out=str(tmp_path_factory.mktemp("walk") / "run"), controller="clip_higher+steer")
    walk = judged(Walk(config, small.model.path, steps=(0, 3), sgd=True, alone=3, first_order=True))
    return walk, walk.walk(), config


def test_the_run_goes_on_bit_for_bit(walked, tmp_path):
    walk, _, config = walked
    plain = judged(Trainer(replace(config, out=str(tmp_path / "plain")), config.model.path))
    plain.run()
    assert same(dict(walk.model.state_dict()), dict(plain.model.state_dict()))
    assert same(walk.engine.state_dict(), plain.engine.state_dict())
    assert same(walk.controller.state_dict(), plain.controller.state_dict())
    assert without_times(config.out) == without_times(tmp_path / "plain")[:-1]  # less the evaluation at the end


def test_what_was_seen(walked):
    _, probes, config = walked
    names = ["AdamW", "SGD", OWN, ALL]
    assert [(one.step, one.optimizer) for one in probes] == [(step, name) for step in (0, 3) for name in names]
    adamw, sgd, alone, together = probes[:4]
    assert adamw.lr == config.optim.lr
    assert adamw.length == sgd.length > 0
    assert (adamw.entropy == sgd.entropy).all()
    assert (adamw.weight == sgd.weight).all()
    assert (adamw.change != sgd.change).any()
    assert adamw.updated.sum() == (adamw.weight != 0).sum() < len(adamw.weight)
    assert len(alone.change) == 3
    assert alone.updated.all()
    assert alone.length < sgd.length
    assert (together.p == alone.p).all()
    assert (together.change != alone.change).all()
    assert set(together.estimates) - set(alone.estimates) == set(OF_WEIGHTS)
    assert not checkpoints(config.out)


def test_the_change_of_the_probed_update_is_that_of_its_step(small, tmp_path):
    """With one update per rollout, the weights after it are those of the next rollout."""
    config = replace(small, out=str(tmp_path / "run"), optim=replace(small.optim, mini_batch_size=8))
    walk = judged(Walk(config, small.model.path, steps=(0,)))
    walk.learner = remembers = Remembers(walk.learner, walk.watched)
    (found,) = walk.walk()
    untrained = Policy(load(small.model.path)[0])
    before, after = (policy.all_stats(remembers.first, 256).entropy.double() for policy in (untrained, walk.policy))
    assert found.change.tolist() == (after - before).tolist()


class Remembers(ProbedLearner):
    """Learner that keeps the first probed mini-batch."""

    first: Batch | None = None

    def _stats(self, batch):
        self.first = self.first or batch
        return super()._stats(batch)


def test_one_token_alone_is_its_own_part_of_the_step(small, tmp_path):
    """From the logits of transformers: the weights move by lr·A/N·∇ log π of that token, N tokens in the mini-batch."""
    walk = judged(Walk(replace(small, out=str(tmp_path / "run")), small.model.path, steps=(0,), alone=3))
    walk.learner = remembers = Remembers(walk.learner, walk.watched)
    _, sgd, alone, together = walk.walk()
    for p, weight, change, total in zip(alone.p, alone.weight, alone.change, together.change, strict=True):
        token = int(np.flatnonzero(sgd.p == p)[0])
        batch = remembers.first
        owner = torch.repeat_interleave(torch.arange(len(batch)), batch.response_lengths)[token : token + 1]
        ids = batch.select(owner).ids
        place = len(ids) - int(batch.response_lengths[owner]) + int((batch.response_index(owner) == token).nonzero())
        model, entropies, sums = load(small.model.path)[0].double(), [], []
        for _ in range(2):
            sums.append(Policy(model).all_stats(batch, 256).entropy.sum().item())
            logp = model(ids[None]).logits[0, place - 1].log_softmax(-1)
            entropies.append(-(logp.exp() * logp).sum().item())
            model.zero_grad()
            (sgd.lr * weight / len(sgd.p) * logp[ids[place]]).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter += parameter.grad
        assert change == pytest.approx(entropies[1] - entropies[0], rel=0.01, abs=3e-6)
        assert abs(change) > 1e-5
        assert total == pytest.approx(sums[1] - sums[0], rel=0.01, abs=5e-5)
        assert abs(total) > 2e-4


def test_a_resumed_run_is_probed_from_its_checkpoint(small, tmp_path):
    config = replace(small, out=str(tmp_path / "run"))
    Trainer(config, small.model.path).run()
    walk = Walk(replace(config, steps=6), small.model.path, steps=(5,), resume=True)
    assert walk.step == 4
    assert [one.step for one in judged(walk).walk()] == [5]
    with pytest.raises(ValueError, match=r"step 2 .*4 to 5"):
        Walk(replace(config, steps=6), small.model.path, steps=(2, 5), resume=True)


def test_first_order_knows_no_bias_of_the_output_layer(small, tmp_path):
    tokenizer = build_char_tokenizer(ALPHABET)
    shape = GPTJConfig(vocab_size=len(tokenizer), n_positions=64, n_embd=16, n_layer=1, n_head=2, rotary_dim=4)
    save(AutoModelForCausalLM.from_config(shape), tokenizer, tmp_path / "model")
    config = replace(small, out=str(tmp_path / "run"), optim=replace(small.optim, layout="padded"))
    with pytest.raises(ValueError, match=r"--first-order .*bias"):
        Walk(config, tmp_path / "model", steps=(0,), first_order=True)


def test_what_cannot_be_probed(small, tmp_path):
    config = replace(small, out=str(tmp_path / "run"), engine=EngineConfig(name="deepspeed"))
    with pytest.raises(ValueError, match=r"--engine\.name torch"):
        Walk(config, small.model.path, steps=(0,))
    still = Walk(replace(small, out=str(tmp_path / "run"), steps=1), small.model.path, steps=(0,))
    with pytest.raises(ValueError, match="no token had a gradient"):
        judged(still, longest=-1).walk()


def test_why_it_had_to_stop_is_said(small, tmp_path):
    optim = replace(small.optim, weight_decay=1e30, max_grad_norm=0.0)
    walk = judged(Walk(replace(small, out=str(tmp_path / "run"), optim=optim), small.model.path, steps=(0,)))
    with pytest.raises(ValueError, match=r"^step 0: loss is nan; no checkpoint"):
        walk.walk()
