"""Partial rollouts: what a response is made of, which groups a step gets, and what a checkpoint keeps in flight."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from same_runs import same, without_times

from llmtrain.policy.model import build_tiny
from llmtrain.policy.plain_state import read_state, write_state
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.process.clock import Clock
from llmtrain.process.ranks import Ranks
from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.settings.config import OptimConfig, RolloutConfig, TaskConfig, TopologyConfig, TrainConfig
from llmtrain.tasks import get_task
from llmtrain.training.check import check
from llmtrain.training.collect import Collector
from llmtrain.training.partial_batches import make_batches
from llmtrain.training.trainer import Trainer
from llmtrain.verifiers import Verdict, Verifier
from llmtrain.verifiers.countdown import ALPHABET

T, N, PROMPTS = 12, 3, 4
CONFIG = TrainConfig(
    steps=8,
    task=TaskConfig(train_problems=128, test_problems=4),
    rollout=RolloutConfig(prompts=PROMPTS, n=N, max_new_tokens=T, old_logp="trainer"),  # for statistics alike
    optim=OptimConfig(mini_batch_size=2),
)
TOKENIZER = build_char_tokenizer(ALPHABET)
MODEL = build_tiny(len(TOKENIZER), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16, seed=1)
TASK = get_task(CONFIG)


def config(partial_tokens, staleness=0, **rollout):
    topology = TopologyConfig(name="ray", staleness=staleness) if staleness else TopologyConfig()
    return replace(CONFIG, rollout=replace(CONFIG.rollout, partial_tokens=partial_tokens, **rollout), topology=topology)


def batches(settings, model=MODEL):
    return make_batches(settings, TASK, TOKENIZER, HFEngine(model, TOKENIZER, settings.rollout), Ranks(), Clock("cpu"))


def moved(model):
    """The model after a step: its weights are others."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.ndim)))


def taken(source, steps, model=None):
    """The responses of the steps, with weights that change after each step if there is a model."""
    found = []
    for step in steps:
        source.engine.update([], step)
        found.append(source.next(step)[1])
        if model is not None:
            moved(model)
    return found


def as_dict(rollouts):
    return {name: getattr(rollouts, name) for name in rollouts.__dataclass_fields__}


@pytest.mark.parametrize("staleness", [0, 1, 2])
@pytest.mark.parametrize("tokens", [T, T + 5])
def test_with_room_for_the_longest_response_nothing_changes(tokens, staleness):
    found = []
    for settings in (config(0, staleness), config(tokens, staleness)):
        model = deepcopy(MODEL)
        found.append(taken(batches(settings, model), range(CONFIG.steps), model))
    assert len({int(rollouts.version[0]) for rollouts in found[0]}) > 4
    for plain, partial in zip(*found, strict=True):
        assert same(as_dict(plain), as_dict(partial))


@pytest.mark.parametrize(("tokens", "more"), [(1, {}), (4, {}), (5, {"max_num_seqs": 7}), (5, {"gen_batch_size": 6})])
def test_an_interrupted_response_is_the_uninterrupted_one(tokens, more):
    """With weights that stay, tokens and ends are the same; log-probabilities differ by rounding."""
    more |= {"filter_groups": "gen_batch_size" in more}
    whole, partial = batches(config(0, **more)), batches(config(tokens, **more))
    size = whole.size
    found = taken(partial, range(6))
    expected = {}
    for rollouts in taken(whole, range(partial.used)):
        for i, prompt in enumerate(rollouts.prompt_ids):
            expected[tuple(prompt)] = rollouts.keep(torch.tensor([i]))
    assert len(expected) == partial.used * size
    lasted = 0
    for rollouts in found:
        assert len(rollouts.prompt_ids) == size
        for i, prompt in enumerate(rollouts.prompt_ids):
            one, other = rollouts.keep(torch.tensor([i])), expected.pop(tuple(prompt))  # no group comes twice
            assert one.responses() == other.responses()
            assert torch.equal(one.finished, other.finished)
            torch.testing.assert_close(one.logp, other.logp, atol=1e-5, rtol=0)
            lasted += len(one.version.unique()) > 1
    assert lasted > size


def test_each_token_is_of_the_policy_of_its_version():
    model, models, found = deepcopy(MODEL), [], []
    source = batches(config(5), model)
    for step in range(5):
        models.append(deepcopy(model))
        found += taken(source, [step], model)
    several = 0
    for rollouts in found:
        logp, version = (x.split(rollouts.response_lengths.tolist()) for x in (rollouts.logp, rollouts.version))
        for i, prompt in enumerate(rollouts.prompt_index.tolist()):
            asked, response = rollouts.prompt_ids[prompt], rollouts.responses()[i]
            logits = torch.stack([each(torch.tensor([asked + response])).logits[0] for each in models])
            all_logp = logits.log_softmax(-1)[version[i], torch.arange(len(asked) - 1, len(asked + response) - 1)]
            expected = all_logp.gather(1, torch.tensor(response)[:, None])[:, 0]
            torch.testing.assert_close(logp[i], expected, atol=1e-5, rtol=0)
            assert version[i].tolist() == sorted(version[i].tolist())
            several += len(version[i].unique()) > 1
    assert several > PROMPTS


def test_a_step_takes_the_oldest_groups_that_ended_and_as_many_start_as_are_used():
    settings = config(3)
    collector = Collector(batches(settings))
    passes = [collector.collect(step).metrics["rollout/passes"] for step in range(8)]
    assert max(passes) == T // 3 == passes[0]  # nothing was in flight
    assert sum(passes) - len(passes) < T // 3  # afterwards a pass for a step
    source, gone = batches(settings), set()
    for step in range(8):
        source.next(step)
        left = set(source._groups.tolist())
        now = set(range(source.used * PROMPTS)) - gone - left
        assert len(now) == PROMPTS
        assert not left & gone
        assert all(group > max(now) for group in source._groups[source._ended()].tolist())
        gone |= now


@pytest.mark.parametrize("staleness", [0, 1, 2])
def test_a_checkpoint_keeps_what_is_in_flight(staleness, tmp_path):
    settings, model = config(5, staleness), deepcopy(MODEL)
    source = batches(settings, model)
    taken(source, range(3), model)
    write_state({"in_flight": source.in_flight()}, tmp_path)
    state = read_state(tmp_path)["in_flight"]
    assert len(state) == 1 + staleness
    assert 0 < len(state[0]["response_lengths"]) == N * len(state[0]["groups"])
    saved = deepcopy(model)
    later = batches(settings, saved)
    later.resume(source.used, state)
    found = [taken(each, range(3, CONFIG.steps), its) for each, its in ((source, model), (later, saved))]
    for one, other in zip(*found, strict=True):
        assert same(as_dict(one), as_dict(other))


def test_responses_in_flight_are_not_lost_by_turning_it_off(tmp_path):
    on, off = batches(config(5)), batches(config(0, staleness=1))
    for source in (on, off):
        taken(source, range(2))
    for source, other in ((on, config(0)), (off, config(5, staleness=1))):
        with pytest.raises(ValueError, match=r"^rollout\.partial_tokens .*put it back$"):
            batches(other).resume(source.used, source.in_flight())
    plain = batches(config(0))
    taken(plain, range(2))
    on = batches(config(T))
    on.resume(plain.used, plain.in_flight())
    assert same(*(as_dict(taken(source, [2])[0]) for source in (plain, on)))


class Even(Verifier):
    """Likes some responses and others not, so that weights move."""

    def judge(self, responses, ground_truths):
        return [Verdict(sum(response.encode()) % 2 == 0, "") for response in responses]


class Once(HFEngine):
    """An engine that answers in one go."""

    continues = False


def test_an_engine_that_cannot_go_on_is_refused():
    settings = replace(CONFIG, eval=replace(CONFIG.eval, every=0))
    check(replace(settings, rollout=replace(settings.rollout, partial_tokens=3)))
    name = f"{__name__}:Once"
    check(replace(settings, rollout=replace(settings.rollout, name=name)))
    with pytest.raises(ValueError, match=r"^rollout\.partial_tokens .* hf or vllm, .* 0$"):
        check(replace(settings, rollout=replace(settings.rollout, name=name, partial_tokens=3)))


def test_ratios_are_to_the_policy_that_drew_the_token(small, tmp_path):
    """One update a step: against the trainer's own log-probabilities the ratio is 1, whatever the age of a token."""
    partial = replace(small.rollout, partial_tokens=5)
    lines = {}
    for old in ("trainer", "rollout"):
        run = replace(
            small,
            out=str(tmp_path / old),
            rollout=replace(partial, old_logp=old),
            optim=replace(small.optim, mini_batch_size=small.rollout.prompts),
            controller="grpo+rollout_correction",
        )
        trainer = Trainer(run, run.model.path)
        trainer.collector.task = replace(trainer.task, start_verifier=Even)
        trainer.run()
        lines[old] = [line for line in without_times(run.out) if "reward" in line]
    for line in lines["trainer"]:
        assert (line["ratio/max"], line["ratio/min"]) == (pytest.approx(1, abs=1e-5), pytest.approx(1, abs=1e-5))
    for line in lines["rollout"]:
        assert line["ratio/max"] == pytest.approx(line["mismatch/ratio_max"], rel=1e-4)
        assert line["ratio/min"] == pytest.approx(line["mismatch/ratio_min"], rel=1e-4)
    ages = [(line["staleness/mean"], line["staleness/max"]) for line in lines["rollout"]]
    assert ages[0] == (0, 0)
    assert 0 < ages[-1][0] < ages[-1][1]
    assert lines["rollout"][-1]["ratio/max"] > 1 + 1e-3
