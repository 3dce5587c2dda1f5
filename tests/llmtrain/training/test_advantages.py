"""Inputs of advantages in a run: greedy responses, terms of the reward, means of sources, probabilities."""

import math
from dataclasses import replace

import pytest
import torch
from tests.llmtrain.training.test_collect import CONFIG, MIXED, RIGHT, WRONG, Engine, N, Numbers, collector

from entrostat.logs.runlog import read_metrics
from llmtrain.process.ranks import Ranks
from llmtrain.sequences.rollouts import Rollouts
from llmtrain.settings.config import OptimConfig, RewardConfig
from llmtrain.training.advantages import Advantages
from llmtrain.training.scored import Scored
from llmtrain.training.trainer import Trainer

DIFFERENT = RewardConfig(length_weight=0.3)
"""Rewards that differ in every group, whether or not a response is right."""
UNFILTERED = replace(CONFIG, rollout=replace(CONFIG.rollout, filter_groups=False))


# Greedy responses -----------------------------------------------------------------------------------------------------


def test_a_greedy_response_is_the_baseline():
    engine = Engine()
    found = collector(replace(UNFILTERED, advantage="remax"), [MIXED + RIGHT + WRONG + MIXED + [1, 0, 1, 0]], engine)
    found = found.collect(0)
    assert [(request.n, request.sampling.temperature) for request in engine.requests] == [(N, 1.0), (1, 0.0)]
    assert engine.requests[1].prompt_ids == [[7, i] for i in range(4)]
    assert found.advantage.tolist() == [0, -1, -1, *RIGHT, -1, -1, -1, *MIXED]
    assert found.metrics["reward/greedy"] == 0.5
    assert found.metrics["reward"] == pytest.approx(5 / 12)  # of the sampled responses alone
    assert found.metrics["tokens"] == 12


def test_a_greedy_response_is_shaped_as_the_others_are():
    config = replace(UNFILTERED, advantage="remax", reward=RewardConfig(function="my:own", function_weight=0.5))
    one = collector(config, [MIXED * 4 + [1] * 4], Engine())
    one.task = replace(one.task, start_reward=lambda: Lengths())
    found = one.collect(0)
    assert found.shaped.tolist() == [1 + 0.5 * N, 0.5 * N, 0.5 * N] * 4
    assert found.advantage.tolist() == [x - (1 + 0.5) for x in found.shaped.tolist()]


class Lengths(Numbers):
    """A reward function that gives every response the size of its group."""

    def __init__(self):
        super().__init__([])

    def score(self, groups):
        return [[float(len(group["responses"]))] * len(group["responses"]) for group in groups]


@pytest.mark.slow
def test_greedy_responses_are_those_of_transformers(small, tmp_path):
    trainer = Trainer(replace(small, advantage="remax", out=str(tmp_path / "run")), small.model.path)
    found = trainer.collector.collect(0).rollouts
    mine = trainer.collector.batches.greedy(found)
    assert mine.prompt_index.tolist() == [*range(8)]
    for ids, response in zip(mine.prompt_ids, mine.responses(), strict=True):
        whole = trainer.model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False,
            max_new_tokens=12,
            eos_token_id=trainer.tokenizer.eos_token_id,
            pad_token_id=trainer.tokenizer.eos_token_id,
        )
        assert response == whole[0, len(ids) :].tolist()


# Terms of the reward --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [2.0, -2.0])
def test_every_term_is_normalised_by_itself(weight):
    """By hand: a verdict in groups of MIXED and a function's numbers, each over its own deviation, then whitened."""
    config = replace(
        UNFILTERED,
        advantage="gdpo",
        reward=RewardConfig(function="my:own", function_weight=weight, verdict_weight=3.0),
    )
    one = collector(config, [MIXED * 4], Engine())
    one.task = replace(one.task, start_reward=lambda: Numbers([0.001, 0.002, 0.006]))
    found = one.collect(0)
    verdict = normalised([3.0, 0.0, 0.0])
    numbers = normalised([weight * x for x in (0.001, 0.002, 0.006)])
    summed = [3 * a + abs(weight) * b for a, b in zip(verdict, numbers, strict=True)] * 4
    mean = sum(summed) / 12
    deviation = math.sqrt(sum((x - mean) ** 2 for x in summed) / 11 + 1e-8)
    assert found.advantage.tolist() == pytest.approx([(x - mean) / deviation for x in summed], rel=1e-5)


def test_a_group_stays_if_any_term_differs():
    """Prompt 1 has equal verdicts and different numbers; prompt 2 has neither."""
    config = replace(CONFIG, advantage="gdpo", reward=RewardConfig(function="my:own", function_weight=1.0))
    one = collector(config, [MIXED + RIGHT + WRONG + MIXED, MIXED * 4], Engine())
    numbers = iter([[0.0] * 3, [0.0, 0.5, 0.5], [0.0] * 3, [0.0] * 3, *[[0.0] * 3] * 4])
    one.task = replace(one.task, start_reward=lambda: Several(numbers))
    found = one.collect(0)
    assert found.rollouts.prompt_ids == [[7, 0], [7, 1], [7, 3], [7, 0]]


class Several(Numbers):
    """A reward function that gives every group the next numbers."""

    def score(self, groups):
        return [next(self.numbers) for _ in groups]


def normalised(values):
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in values) / (len(values) - 1))
    return [(x - mean) / (deviation + 1e-6) for x in values]


# Means of sources -----------------------------------------------------------------------------------------------------


def test_means_go_on_from_batch_to_batch():
    config = replace(UNFILTERED, advantage="rae decay=0.5")
    engine = Engine()
    one = collector(config, [MIXED * 4, RIGHT * 4], engine)
    mean, expected = 0.0, []
    for rewards in (MIXED * 4, RIGHT * 4):
        for reward in rewards:
            expected.append(reward - mean)
            mean = 0.5 * mean + 0.5 * reward
    found = []
    for engine.version in range(2):
        collected = one.collect(engine.version)
        found += collected.advantage.tolist()
    assert found == pytest.approx(expected)
    assert collected.metrics["baseline/countdown"] == pytest.approx(mean)


class Half(Ranks):
    """One of two ranks, given what the other one has."""

    size = 2

    def __init__(self, others):
        super().__init__()
        self.others = others

    def gather(self, items):
        return items + self.others


def scored(rewards, sources, numbers):
    index = torch.tensor([number // 2 for number in numbers])
    count = len(numbers)
    rollouts = Rollouts(
        [[7]] * len(sources),
        torch.zeros(count, dtype=torch.long),
        torch.ones(count, dtype=torch.long),
        torch.zeros(count),
        index,
        torch.ones(count, dtype=torch.bool),
    )
    return Scored(rollouts, torch.tensor([rewards]), sources), torch.tensor(rewards), torch.tensor(numbers)


def test_responses_of_all_ranks_count_in_their_order():
    """Prompts 0 to 3 with two responses each; one rank has the prompts 0 and 3, the other 1 and 2."""
    sources = ["maths", "code", "maths", "code"]
    rewards = [1.0, 0.0, 0.5, 1.0, 1.0, 1.0, 0.0, 1.0]
    config = replace(UNFILTERED, advantage="rae decay=0.5")
    alone = Advantages(config, Ranks())
    whole = alone.of(*scored(rewards, sources, range(8)))
    means, expected = {"maths": 0.0, "code": 0.0}, []
    for i, reward in enumerate(rewards):
        source = sources[i // 2]
        expected.append(reward - means[source])
        means[source] = 0.5 * means[source] + 0.5 * reward
    assert whole.tolist() == pytest.approx(expected)
    assert alone.baselines == pytest.approx(means)
    for mine, other in (([0, 1, 6, 7], [2, 3, 4, 5]), ([2, 3, 4, 5], [0, 1, 6, 7])):
        others = [(i, rewards[i], sources[i // 2]) for i in other]
        half = Advantages(config, Half(others))
        part = half.of(*scored([rewards[i] for i in mine], sources, mine))
        assert part.tolist() == pytest.approx([expected[i] for i in mine])
        assert half.baselines == pytest.approx(means)


def test_what_is_not_trained_on_moves_no_mean():
    one = Advantages(replace(UNFILTERED, advantage="rae"), Ranks())
    given = scored([1.0, 0.0], ["maths"], [0, 1])
    one.of(*given, learn=False)
    assert one.baselines == {}


@pytest.mark.slow
def test_a_resumed_run_goes_on_with_its_means(small, tmp_path):
    config = replace(small, advantage="rae decay=0.9", reward=DIFFERENT, steps=4)
    straight, halves = (replace(config, out=str(tmp_path / name)) for name in ("straight", "halves"))
    Trainer(straight, small.model.path).run()
    Trainer(replace(halves, steps=2), small.model.path).run()
    Trainer(halves, halves.out, resume=True).run()
    first, second = (
        [(line["baseline/countdown"], line["entropy"]) for line in read_metrics(config.out) if "entropy" in line]
        for config in (straight, halves)
    )
    assert len(first) == 4
    assert len({mean for mean, _ in first}) == 4
    assert first == second


# Probabilities --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_baseline_of_a_token_in_loops(small, tmp_path):
    config = replace(
        small,
        advantage="optimal_token",
        reward=DIFFERENT,
        out=str(tmp_path / "run"),
        optim=OptimConfig(lr=1e-3, mini_batch_size=4, micro_batch_tokens=64),
    )
    trainer = Trainer(config, small.model.path)
    found = trainer.collector.collect(0)
    made, _ = trainer.annotator.experience(found)
    rollouts, device = found.rollouts, trainer.model.device
    responses, owners = rollouts.responses(), rollouts.prompt_index.tolist()
    weights = []
    for response, owner in zip(responses, owners, strict=True):
        prompt = rollouts.prompt_ids[owner]
        with torch.no_grad():
            logits = trainer.model(torch.tensor([[*prompt, *response]], device=device)).logits[0].double()
        total, each = 0.0, []
        for place, token in enumerate(response):
            p = logits[len(prompt) + place - 1].softmax(-1)
            total += float(1 - 2 * p[token] + (p * p).sum())
            each.append(total)
        weights.append(each)
    expected = []
    for i, response in enumerate(responses):
        for place in range(len(response)):
            group = [j for j in range(len(responses)) if owners[j] == owners[i] and len(responses[j]) > place]
            total = sum(weights[j][place] for j in group)
            mean = sum(weights[j][place] * float(found.shaped[j]) for j in group) / total
            expected.append(float(found.shaped[i]) - (mean if len(group) > 1 else 0.0))
    assert made.before.advantage.tolist() == pytest.approx(expected, abs=1e-4)
    assert len(made.before.advantage.unique()) > len(responses)


@pytest.mark.slow
@pytest.mark.parametrize("advantage", ["remax", "gdpo", "rae", "optimal_token"])
def test_a_run_trains(small, tmp_path, advantage):
    config = replace(small, advantage=advantage, reward=DIFFERENT, steps=2, out=str(tmp_path / "run"))
    before = {name: weight.clone() for name, weight in Trainer(config, small.model.path).model.named_parameters()}
    trainer = Trainer(config, small.model.path)
    trainer.run()
    lines = [line for line in read_metrics(config.out) if "grad_norm" in line]
    assert all(math.isfinite(line["grad_norm"]) for line in lines)
    assert max(line["grad_norm"] for line in lines) > 0
    assert any(not torch.equal(weight, before[name]) for name, weight in trainer.model.named_parameters())


@pytest.mark.slow
@pytest.mark.parametrize("advantage", ["remax", "rae"])
def test_a_group_may_be_one_response(small, tmp_path, advantage):
    """A greedy response or a running mean is what the response is compared with."""
    rollout = replace(small.rollout, n=1)
    config = replace(small, advantage=advantage, reward=RewardConfig(overlong_buffer=12), steps=2, rollout=rollout)
    Trainer(replace(config, out=str(tmp_path / "run")), small.model.path).run()
    lines = [line for line in read_metrics(tmp_path / "run") if "grad_norm" in line]
    assert max(line["grad_norm"] for line in lines) > 0
