"""Ranks that hold any number of groups train on about as many tokens, and nothing is lost on the way."""

import exchange_ranks
import pytest
import torch
from exchange_ranks import HELD, MINI_BATCHES, SAMPLES, held, sampled
from tests.ranks import group, run_ranks

from llmtrain.plan.derived import lay_out
from llmtrain.plan.plan_presets import PRESETS
from llmtrain.process.ranks import Ranks
from llmtrain.sequences.collected import Collected
from llmtrain.sequences.exchange import deal, lightest
from llmtrain.sequences.rollouts import Rollouts, merge

pytestmark = pytest.mark.slow

SIZE = 3


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Where three gloo ranks, of which the third came with nothing, wrote what they were sent."""
    out = tmp_path_factory.mktemp("exchange")
    run_ranks(group(SIZE), exchange_ranks.main, out)
    return out


@pytest.fixture(params=["whole", "split"])
def groups(request) -> str:
    return request.param


@pytest.fixture
def found(out, groups) -> list[Collected]:
    """By rank."""
    told = [torch.load(out / f"{groups}-{rank}.pt", weights_only=True) for rank in range(SIZE)]
    return [Collected(**{**one, "rollouts": Rollouts(**one["rollouts"])}) for one in told]


def test_everything_arrives(found):
    whole = sampled()
    together = merge([one.rollouts for one in found])
    assert together.prompt_ids == whole.rollouts.prompt_ids
    assert sorted(torch.cat([one.sequence for one in found]).tolist()) == whole.sequence.tolist()
    for one in found:
        assert torch.equal(one.sequence, one.sequence.sort().values)
        expected = whole.rollouts.take(one.sequence)
        for name in ("response_ids", "response_lengths", "logp", "prompt_index", "finished", "version"):
            assert torch.equal(*(torch.as_tensor(getattr(x, name)) for x in (one.rollouts, expected))), name
        for name in ("reward", "shaped", "advantage"):
            assert torch.equal(getattr(one, name), getattr(whole, name)[one.sequence]), name
        assert one.metrics == whole.metrics


def test_groups_stay_whole_where_they_have_to(found, groups):
    sizes = torch.cat([one.rollouts.prompt_index.bincount() for one in found])
    assert (set(sizes.tolist()) - {0} == {SAMPLES}) == (groups == "whole")


def test_ranks_have_about_as_many_tokens_of_each_mini_batch(found, groups):
    """Of those with an advantage, and of all; 7 of 12 whole groups cannot be dealt evenly to three."""
    for part in MINI_BATCHES:
        mine = [torch.isin(one.rollouts.prompt_index, part) for one in found]
        for least in (-1, 0):
            tokens = torch.tensor(
                [
                    one.rollouts.lengths[some & (one.advantage > least)].sum()
                    for some, one in zip(mine, found, strict=True)
                ]
            )
            assert tokens.max() < {"whole": 1.3, "split": 1.05}[groups] * tokens.float().mean(), tokens


@pytest.mark.parametrize(("whole_groups", "expected"), [(False, [1, 0, 0, 0, 1, 1]), (True, [1, 1, 0, 0, 1, 1])])
def test_sequences_with_an_advantage_are_dealt_first(whole_groups, expected):
    """Three groups of two, of 10 and 6, 5 and 4, 2 and 1 tokens: alone 5 and 1, then 10, 6, 4 and 2."""
    lengths, advantage = torch.tensor([9, 5, 4, 3, 1, 0]), torch.tensor([0.0, 0.0, -1.0, 0.0, 0.0, 1.0])
    nothing, sequence = torch.empty(0), torch.arange(6)
    rollouts = Rollouts([[1]] * 3, nothing, lengths, nothing, sequence // 2, nothing)
    ranks = Ranks()
    ranks.size = 2
    one = Collected(rollouts, sequence, advantage, advantage, advantage, {})
    assert deal(one, (torch.arange(3),), 2, whole_groups, ranks).tolist() == expected


def test_the_lightest_rank_is_next():
    assert lightest([9, 7, 4, 3, 2, 1], 3) == [0, 1, 2, 2, 1, 2]  # 9; 7 and 2; 4, 3 and 1
    assert lightest([5, 0, 0, 0], 2) == [0, 1, 1, 1]
    assert lightest([0, 0, 0, 0], 2) == [0, 1, 0, 1]


def test_they_were_uneven():
    tokens = torch.tensor([int(held(rank).rollouts.lengths.sum()) for rank in range(SIZE)])
    assert tokens.max() > 1.5 * tokens.float().mean()
    assert HELD.max() == 1


@pytest.mark.parametrize(("name", "excess"), [("qwen3-8b-64gpu", 0.0), ("qwen2.5-32b-64gpu", 0.02)])
def test_ranks_are_as_uneven_as_the_plan_says(name, excess):
    """Tokens of the rank with most over the mean, of updates whose responses have the planned lengths."""
    plan = lay_out(PRESETS[name].config)
    config, found = plan.config, []
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        drawn = torch.rand(config.mini_batch_size, config.n, generator=generator)
        lengths = (-plan.lengths.scale * drawn.log()).clamp(1, config.max_response_length)
        tokens = (config.mean_prompt_length + lengths).flatten().sort(descending=True).values
        loads = torch.tensor(lightest(tokens.tolist(), plan.ranks)).bincount(tokens)
        found.append(float(loads.max() / loads.mean()) - 1)
    assert sum(found) / 20 == pytest.approx(excess, abs=0.01)
