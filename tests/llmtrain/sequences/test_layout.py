"""Statistics and gradients are those of padded rows in every layout, and no sequence sees another."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat.logs.runlog import read_metrics
from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import IDLE, Policy
from llmtrain.sequences.batch import Batch
from llmtrain.sequences.layout import (
    LAYOUTS,
    before,
    packed,
    packed_slices,
    padded,
    same_prompt,
    shared,
    shared_slices,
    similar,
)
from llmtrain.settings.config import OptimConfig, TrainConfig
from llmtrain.training.trainer import Trainer

VOCAB = 50
OTHERS = [name for name in LAYOUTS if name != "padded"]


def batch_of(seed: int, groups: int = 4, samples: int = 3) -> Batch:
    """Groups of responses to one prompt each, in no order."""
    g = torch.Generator().manual_seed(seed)
    count = groups * samples
    size, responses = torch.randint(1, 9, (groups,), generator=g), torch.randint(1, 40, (count,), generator=g)
    owner = (torch.arange(count) // samples)[torch.randperm(count, generator=g)]
    texts = [torch.randint(2, VOCAB, (int(n),), generator=g) for n in size]
    parts = [
        torch.cat([texts[i], torch.randint(2, VOCAB, (int(r),), generator=g)])
        for i, r in zip(owner, responses, strict=True)
    ]
    return Batch(torch.cat(parts), size[owner], responses)


@pytest.fixture(scope="module")
def model():
    return build_tiny(VOCAB, hidden=64, layers=3, heads=4, kv_heads=2, intermediate=64)


def test_rows_by_hand():
    """Prompt 7 8 with responses 1 2 3 and 4, and prompt 9 with response 5 6."""
    batch = Batch(torch.tensor([7, 8, 1, 2, 3, 9, 5, 6, 7, 8, 4]), torch.tensor([2, 1, 2]), torch.tensor([3, 2, 1]))
    everything = torch.arange(3)
    assert padded(batch, everything).ids.tolist() == [[7, 8, 1, 2], [9, 5, 6, 0], [7, 8, 4, 0]]
    row = packed(batch, everything)
    assert row.ids.tolist() == [[7, 8, 1, 2, 9, 5, 7, 8]]
    assert row.position.tolist() == [[0, 1, 2, 3, 0, 1, 0, 1]]
    assert row.column.tolist() == [1, 2, 3, 4, 5, 7]
    found = shared(batch, everything)
    assert found.ids.tolist() == [[7, 8, 1, 2], [9, 5, 0, 0]]
    assert found.position.tolist() == [[0, 1, 2, 3], [0, 1, 0, 0]]
    assert found.row.tolist() == [0, 0, 0, 1, 1, 0]
    assert found.column.tolist() == [1, 2, 3, 0, 1, 1]
    assert found.mask[0, 0].tolist() == torch.ones(4, 4).tril().bool().tolist()


@pytest.mark.parametrize("budget", [60, 300, 10**6])
@pytest.mark.parametrize("layout", OTHERS)
def test_statistics_are_those_of_padded_rows(model, layout, budget):
    batch = batch_of(0)
    expected, found = (Policy(model, layout=name).all_stats(batch, budget) for name in ("padded", layout))
    for name, a, b in zip(expected._fields, expected, found, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5, msg=name)


@pytest.mark.parametrize("layout", OTHERS)
def test_gradients_too(model, layout):
    batch, found = batch_of(1), []
    for name in ("padded", layout):
        model.zero_grad()
        stats = Policy(model, layout=name).token_stats(batch, torch.tensor([3, 0, 11, 7, 5, 1]))
        (stats.logp.sum() + 0.3 * stats.entropy.sum()).backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert (found[0] - found[1]).norm() < 1e-5 * found[0].norm()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_repeat(layout):
    """Also where states are shared by many tokens and threads race: each adds up in one order."""
    prompt, responses = torch.arange(2, 7), torch.randint(2, VOCAB, (64,), generator=torch.Generator().manual_seed(0))
    ids = torch.cat([torch.cat([prompt, one[None]]) for one in responses])
    batch = Batch(ids, torch.full((64,), len(prompt)), torch.ones(64, dtype=torch.long))
    model = build_tiny(VOCAB, hidden=512, layers=1, heads=4, kv_heads=2, intermediate=64)
    policy, found = Policy(model, layout=layout), []
    for _ in range(20):
        model.zero_grad()
        policy.token_stats(batch, torch.arange(64)).logp.sum().backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert all(torch.equal(one, found[0]) for one in found)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_response_sees_another(model, layout):
    batch, policy = batch_of(2, groups=2), Policy(model, layout=layout)
    other = batch.ids.clone()
    start, end = int(batch.prompt_lengths[0]), int(batch.lengths[0])
    other[start:end] = (other[start:end] + 5) % VOCAB
    first, second = (policy.token_stats(b, torch.arange(6)).logp for b in (batch, replace(batch, ids=other)))
    own = int(batch.response_lengths[0])
    assert (first[:own] - second[:own]).abs().max() > 0.01
    torch.testing.assert_close(first[own:], second[own:], rtol=0, atol=1e-6)


@pytest.mark.parametrize("layout", OTHERS)
def test_a_model_that_takes_a_row_for_a_sequence_is_refused(model, layout, monkeypatch):
    plain = type(model.base_model).forward

    def blind(self, input_ids, position_ids=None, attention_mask=None, **kwargs):
        return plain(self, input_ids=input_ids, **kwargs)

    monkeypatch.setattr(type(model.base_model), "forward", blind)
    with pytest.raises(ValueError, match=r"does not suit .*use --optim.layout padded"):
        Policy(model, layout=layout)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), budget=st.integers(1, 200), every=st.integers(1, 3))
def test_slices_hold_each_sequence_once_within_the_budget(seed, budget, every):
    batch = batch_of(seed)
    chosen = torch.arange(len(batch))[::every]
    for lay, cut in LAYOUTS.values():
        found = cut(batch, chosen, budget)
        assert sorted(i for part in found for i in part.tolist()) == chosen.tolist()
        for part in found:
            assert len(part) == 1 or lay(batch, part).ids.numel() <= budget
        assert cut(batch, chosen[:0], budget) == []


@pytest.mark.parametrize(
    ("lengths", "sums"), [([50, 40, 30, 30, 20, 20, 10], [100, 100]), ([60, 60, 60, 20], [60, 60, 80])]
)
def test_packs_are_few_and_even(lengths, sums):
    lengths = torch.tensor(lengths)
    batch = Batch(torch.zeros(200, dtype=torch.long), torch.ones_like(lengths), lengths - 1)
    found = packed_slices(batch, torch.arange(len(lengths)), 100)
    assert sorted(int(lengths[part].sum()) for part in found) == sums


def test_padded_rows_are_of_similar_length():
    lengths = torch.randint(1, 50, (200,), generator=torch.Generator().manual_seed(0))
    found = similar(lengths, 100)
    assert all(len(part) * int(lengths[part].max()) <= 100 for part in found)
    assert len(found) < 90  # 25 tokens on average: four a slice fit
    assert [part.tolist() for part in similar(torch.tensor([9, 500, 9]), 20)] == [[1], [0, 2]]


def test_groups_stay_together_where_they_fit():
    batch = batch_of(3)
    group = same_prompt(batch, torch.arange(12))
    for part in LAYOUTS["shared"][1](batch, torch.arange(12), 400):
        assert all(int((group[part] == g).sum()) == 3 for g in group[part].unique())
    pair = Batch(torch.tensor([7, 8, 1, 2, 3, 7, 8, 4]), torch.tensor([2, 2]), torch.tensor([3, 1]))
    assert [[len(part) for part in shared_slices(pair, torch.arange(2), budget)] for budget in (6, 5)] == [[2], [1, 1]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_idle_rank_feeds_one_token_and_predicts_none(layout):
    found = LAYOUTS[layout][0](IDLE, torch.tensor([0]))
    assert found.ids.tolist() == [[0]]
    assert found.row.tolist() == found.column.tolist() == []


def test_a_prompt_is_not_the_one_that_it_begins():
    batch = Batch(torch.tensor([7, 5, 7, 0, 5, 7, 1, 5, 7, 5]), torch.tensor([1, 2, 2, 1]), torch.ones(4).long())
    a, b, c, d = same_prompt(batch, torch.arange(4)).tolist()
    assert a == d
    assert len({a, b, c}) == 3


def test_sums_before():
    found = before(torch.tensor([5, 1, 2, 7, 4]), torch.tensor([1, 0, 1, 0, 1]))
    assert found.tolist() == [0, 0, 5, 1, 7]


def test_a_run_is_the_same_in_every_layout(small, tmp_path):
    found = []
    for layout in LAYOUTS:
        config = replace(small, steps=2, out=str(tmp_path / layout), controller="steer")
        config = replace(config, optim=replace(config.optim, layout=layout, micro_batch_tokens=90))
        Trainer(config, small.model.path).run()
        found.append(read_metrics(config.out))
    for expected, *others in zip(*found, strict=True):
        for name in {"entropy", "reward", "loss", "grad_norm"} & expected.keys():
            for other in others:
                assert other[name] == pytest.approx(expected[name], rel=1e-3, abs=1e-5)


def test_an_unknown_layout_is_named():
    with pytest.raises(ValueError, match="padded, packed, shared; got 'ragged'"):
        TrainConfig(optim=OptimConfig(layout="ragged"))
