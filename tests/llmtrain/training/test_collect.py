"""Responses that a rollout step trains on, with an engine and a verifier whose answers are given."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

from llmtrain.data.curriculum import Curriculum
from llmtrain.process.clock import Clock
from llmtrain.process.ranks import Ranks
from llmtrain.rollout.rollout_engine import RolloutError
from llmtrain.sequences.rollouts import Rollouts
from llmtrain.settings.config import DataConfig, OptimConfig, RewardConfig, RolloutConfig, TopologyConfig, TrainConfig
from llmtrain.tasks import get_task
from llmtrain.training.batches import Batches
from llmtrain.training.collect import Collector
from llmtrain.verifiers import Verdict, Verifier

N = 3
CONFIG = TrainConfig(
    steps=9,
    rollout=RolloutConfig(prompts=4, n=N, max_new_tokens=5, filter_groups=True, max_gen_batches=3),
    optim=OptimConfig(mini_batch_size=2),
)


class Engine:
    """Answers each request with one token a response: the number of the request, counted from 0."""

    def __init__(self, version: int = 0) -> None:
        self.requests, self.version = [], version

    def submit(self, request):
        number = len(self.requests)
        self.requests.append(request)
        count = len(request.shares[0]) * request.n
        version = self.version
        return lambda: Rollouts(
            prompt_ids=[[7, i] for i in range(len(request.prompt_ids))],
            response_ids=torch.full((count,), number),
            response_lengths=torch.ones(count, dtype=torch.long),
            logp=torch.full((count,), -1.0),
            prompt_index=torch.tensor(request.shares[0]).repeat_interleave(request.n),
            finished=torch.ones(count, dtype=torch.bool),
            version=version,
        )

    def metrics(self):
        return {"rollout/engines": 2.0}


class Words:
    """A tokenizer whose tokens are characters, and which writes nothing."""

    bos_token_id = None

    def __call__(self, texts, add_special_tokens):
        return {"input_ids": [[*map(ord, text)] for text in texts]}

    def batch_decode(self, ids, skip_special_tokens):
        return ["" for _ in ids]


class Given(Verifier):
    """Gives these rewards, one after the other; at `lost`, a number of a response, a check is lost."""

    def __init__(self, rewards, lost=()):
        super().__init__()
        self.rewards, self.lost, self.given = iter(rewards), lost, 0

    def judge(self, responses, ground_truths):
        verdicts = []
        for _ in responses:
            self.failures["timeout"] += self.given in self.lost
            self.given += 1
            verdicts.append(Verdict(bool(next(self.rewards)), ""))
        return verdicts


def collector(config, rewards, engine, lost=()):
    """rewards: for each batch the rewards of its 4 · N responses, in order."""
    verifier = Given([r for batch in rewards for r in batch], lost)
    task = replace(get_task(CONFIG), start_verifier=lambda: verifier)
    return Collector(Batches(config, task, Words(), engine, Ranks(), Clock("cpu")))


RIGHT, WRONG, MIXED = [1] * N, [0] * N, [1, 0, 0]


def test_groups_of_one_reward_are_replaced():
    engine = Engine()
    rewards = [MIXED + RIGHT + WRONG + MIXED, WRONG + RIGHT + RIGHT + MIXED, MIXED + MIXED + MIXED + MIXED]
    found = collector(CONFIG, rewards, engine).collect(0)
    assert found.rollouts.prompt_index.tolist() == [i for i in range(4) for _ in range(N)]
    assert found.rollouts.response_ids.tolist() == [0] * 2 * N + [1] * N + [2] * N
    assert found.rollouts.prompt_ids == [[7, 0], [7, 3], [7, 3], [7, 0]]
    assert found.reward.tolist() == MIXED * 4
    assert found.metrics["groups/kept"] == 4 / 12
    assert found.metrics["reward"] == pytest.approx(sum(map(sum, rewards)) / 36)
    assert found.metrics["tokens"] == 36
    assert found.metrics["rollout/engines"] == 2  # the engine's own
    assert len({tuple(map(tuple, request.prompt_ids)) for request in engine.requests}) == 3


class Numbers:
    """A reward function that gives these numbers to every group, and fails once a group."""

    def __init__(self, numbers):
        self.numbers, self.failures, self.errors = numbers, Counter(), []

    def score(self, groups):
        self.failures["error"] += len(groups)
        return [self.numbers for _ in groups]


@pytest.mark.parametrize(("weight", "shaped"), [(1.0, [3.0, 0.0, 2.0]), (0.0, [2.0, 0.0, 2.0])])
def test_a_function_is_added_to_the_verdict_which_stays_the_metric(weight, shaped):
    """Groups whose numbers differ are kept, though all their verdicts may be the same."""
    config = replace(CONFIG, reward=RewardConfig(function="my:own", function_weight=2.0, verdict_weight=weight))
    one = collector(config, [MIXED + WRONG * 3], Engine())
    one.task = replace(one.task, start_reward=lambda: Numbers([1.0, 0.0, 1.0]))
    found = one.collect(0)
    assert found.shaped.tolist() == [*shaped, *[2.0, 0.0, 2.0] * 3]
    assert found.reward.tolist() == MIXED + WRONG * 3
    assert found.metrics["reward"] == pytest.approx(1 / 12)
    assert found.metrics["reward/function"] == pytest.approx(4 / 3)
    assert found.metrics["verify/error"] == 4


def test_the_share_of_rewards_whose_answer_stands_in_the_prompt():
    class Copying(Given):
        def judge(self, responses, ground_truths):
            found = super().judge(responses, ground_truths)
            return [replace(one, extracted="=" if i % 2 else "not there") for i, one in enumerate(found)]

    config = replace(CONFIG, rollout=replace(CONFIG.rollout, filter_groups=False))
    one = collector(config, [], Engine())
    for rewards, share in (([1] * 12, 0.5), ([0, 1] * 6, 1.0), ([0] * 12, None)):
        one.task = replace(one.task, start_verifier=lambda rewards=rewards: Copying(rewards))
        assert one.collect(0).metrics.get("verify/copied") == share


@pytest.mark.parametrize(("advantage", "expected"), [("opo", [2 / 3, -1 / 3, -1 / 3]), ("prime", [1, -0.5, -0.5])])
def test_groups_of_several_batches_are_numbered_through(advantage, expected):
    config = replace(CONFIG, advantage=advantage)
    found = collector(config, [WRONG + MIXED * 3, MIXED * 4], Engine()).collect(0)
    assert found.sequence.tolist() == list(range(4 * N))
    assert found.advantage.tolist() == pytest.approx(expected * 4)


def test_checks_without_an_answer_are_counted_by_step():
    config = replace(CONFIG, rollout=replace(CONFIG.rollout, filter_groups=False))
    engine = Engine()
    several = collector(config, [MIXED + RIGHT + WRONG * 2] * 3, engine, lost=(2, 5, 30))
    told = []
    for engine.version in range(3):
        found = several.collect(engine.version)
        assert len(found.rollouts) == 4 * N  # without filtering all groups stay
        told.append(found.metrics.get("verify/timeout"))
        several.task.verifier.failures["timeout"] += 5  # those of an evaluation are its own
    assert told == [2, None, 1]


def test_batches_are_numbered_through_the_run():
    engine = Engine()
    several = collector(CONFIG, [MIXED + WRONG * 3, MIXED * 3 + WRONG, MIXED * 4], engine)
    several.collect(0)
    assert several.batches.used == 2
    engine.version = 1
    several.collect(1)
    plain, straight = Engine(), replace(CONFIG, rollout=replace(CONFIG.rollout, filter_groups=False))
    fixed = collector(straight, [MIXED * 4] * 3, plain)
    for plain.version in range(3):
        fixed.collect(plain.version)
    assert [r.prompt_ids for r in engine.requests] == [r.prompt_ids for r in plain.requests]
    assert [r.seed for r in engine.requests] == [r.seed for r in plain.requests]


def test_steps_may_have_groups_of_other_sizes():
    """Groups have 3, 2 and 4 responses, as `piecewise(0: 3, 1: 2, 2: 4)` says; advantages are within these groups."""
    rollout = replace(CONFIG.rollout, filter_groups=False, n="piecewise(0: 3, 1: 2, 2: 4)")
    config, engine = replace(CONFIG, rollout=rollout, advantage="dr_grpo"), Engine()
    assert [rollout.n_at(step, 9) for step in range(4)] == [3, 2, 4, 4]
    assert (rollout.group_sizes, rollout.sampling.samples) == ((2, 3, 4), 4)
    assert replace(rollout, n="linear(2, 5, 6)").group_sizes == (2, 3, 4, 5)
    assert [replace(rollout, n="linear(2, 5, 6)").n_at(step, 9) for step in (0, 1, 2, 6, 8)] == [2, 2, 3, 5, 5]
    several = collector(config, [MIXED * 4, [1, 0] * 4, [1, 0, 0, 0] * 4], engine)
    means = []
    for engine.version in range(3):
        several.batches.n = config.rollout.n_at(engine.version, config.steps)
        found = several.collect(engine.version)
        assert found.sequence.tolist() == list(range(4 * several.batches.n))
        means.append(found.advantage[0].item())
    assert [request.n for request in engine.requests] == [3, 2, 4]
    assert means == pytest.approx([2 / 3, 1 / 2, 3 / 4])
    with pytest.raises(ValueError, match=r"rollout\.n as a schedule needs .*staleness"):
        replace(config, topology=TopologyConfig(name="ray", staleness=1))


def test_a_curriculum_gets_the_verdicts_of_all_responses_and_draws_by_them():
    """Also of groups that are dropped: after two batches some rates are ½·½ + ½·(0, 1 or ⅓)."""
    config = replace(CONFIG, data=DataConfig(curriculum=True))
    engine = Engine()
    several = collector(config, [MIXED + WRONG + RIGHT * 2, MIXED * 4], engine)
    several.collect(0)
    curriculum = several.batches.curriculum
    asked = curriculum.asked > 0
    once = curriculum.pass_rates[curriculum.asked == 1]
    assert curriculum.asked.sum() == 8
    assert set(once.round(6)) <= {0.25, 0.75, round(0.25 + 1 / 6, 6)}
    assert {0.25, 0.75} <= set(once)
    assert (curriculum.pass_rates[~asked] == 0.5).all()
    again = Curriculum([len(source) for source in several.task.train], 0.5, 0.1)
    first = several.task.questions_at(again.take(0, 4, CONFIG.seed))
    assert engine.requests[0].prompt_ids == [[*map(ord, question.prompt)] for question in first]


def test_it_gives_up_and_trains_on_what_there_is():
    found = collector(CONFIG, [WRONG * 4, WRONG * 3 + MIXED, RIGHT * 4], Engine()).collect(0)
    assert found.rollouts.response_ids.tolist() == [1] * N
    assert not found.dropped
    found = collector(CONFIG, [WRONG * 4] * 3, Engine()).collect(0)
    assert len(found.rollouts) == 4 * N
    assert found.metrics["groups/kept"] == 0
    assert found.dropped


def test_a_batch_may_have_more_prompts_than_a_step_trains_on():
    """Four groups of six prompts are kept, in order; what is too much is dropped."""
    rollout = replace(CONFIG.rollout, gen_batch_size=6)
    engine = Engine()
    several = collector(replace(CONFIG, rollout=rollout), [RIGHT + MIXED * 5, MIXED * 6], engine)
    found = several.collect(0)
    assert found.rollouts.prompt_ids == [[7, 1], [7, 2], [7, 3], [7, 4]]
    assert found.reward.tolist() == MIXED * 4
    assert found.metrics["groups/kept"] == 4 / 6
    engine.version = 1
    several.collect(1)
    assert [len(request.prompt_ids) for request in engine.requests] == [6, 6]
    texts = [tuple(ids) for request in engine.requests for ids in request.prompt_ids]
    assert len(set(texts)) == 12  # the second batch goes on where the first ended
    with pytest.raises(ValueError, match="gen_batch_size needs"):
        replace(rollout, filter_groups=False)


def test_staleness_asks_ahead_and_never_trains_on_older_responses():
    config = replace(
        CONFIG,
        steps=4,
        rollout=replace(CONFIG.rollout, filter_groups=False),
        topology=TopologyConfig(name="ray", staleness=2),
    )
    engine = Engine()
    ahead = collector(config, [MIXED * 4] * 4, engine)
    asked, versions = [], []
    for step in range(4):
        engine.version = step
        versions += ahead.collect(step).rollouts.version.unique().tolist()
        asked.append(len(engine.requests))
    assert asked == [3, 4, 4, 4]
    assert versions == [0, 0, 0, 1]
    engine.version = 9
    late = collector(config, [MIXED * 4] * 4, Engine())
    with pytest.raises(RolloutError, match="the oldest allowed is"):
        late.collect(5)
