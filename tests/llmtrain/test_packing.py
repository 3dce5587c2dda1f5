"""Packed sequences are the same as padded ones, and do not see one another."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat.runlog import read_metrics
from llmtrain.batch import Batch, packs
from llmtrain.model import build_tiny
from llmtrain.policy import Policy
from llmtrain.trainer import Trainer

VOCAB = 50


def batch_of(seed: int, count: int = 13) -> Batch:
    g = torch.Generator().manual_seed(seed)
    prompts, responses = torch.randint(1, 9, (count,), generator=g), torch.randint(1, 40, (count,), generator=g)
    return Batch(torch.randint(2, VOCAB, (int((prompts + responses).sum()),), generator=g), prompts, responses)


@pytest.fixture(scope="module")
def model():
    return build_tiny(VOCAB, hidden=64, layers=3, heads=4, kv_heads=2, intermediate=64)


@pytest.mark.parametrize("budget", [60, 300, 10**6])
def test_packed_statistics_are_those_of_padded_sequences(model, budget):
    batch = batch_of(0)
    padded, packed = (Policy(model, packing=packing).all_stats(batch, budget) for packing in (False, True))
    for name, a, b in zip(padded._fields, padded, packed, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5, msg=name)


def test_gradients_too(model):
    batch, found = batch_of(1), []
    for packing in (False, True):
        model.zero_grad()
        stats = Policy(model, packing=packing).token_stats(batch, torch.tensor([3, 0, 12, 7]))
        (stats.logp.sum() + 0.3 * stats.entropy.sum()).backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert (found[0] - found[1]).norm() < 1e-5 * found[0].norm()


def test_nothing_leaks_from_one_sequence_into_another(model):
    batch, policy = batch_of(2, count=3), Policy(model, packing=True)
    other = batch.ids.clone()
    end = int(batch.lengths[0])
    other[:end] = (other[:end] + 5) % VOCAB
    first, second = (policy.token_stats(b, torch.arange(3)).logp for b in (batch, replace(batch, ids=other)))
    own = int(batch.response_lengths[0])
    assert (first[:own] - second[:own]).abs().max() > 0.01
    torch.testing.assert_close(first[own:], second[own:], rtol=0, atol=1e-6)


def test_a_model_that_leaks_is_refused(model, monkeypatch):
    plain = type(model.base_model).forward

    def blind(self, input_ids, position_ids=None, **kwargs):  # a model that takes the row for one sequence
        return plain(self, input_ids=input_ids, **kwargs)

    monkeypatch.setattr(type(model.base_model), "forward", blind)
    with pytest.raises(ValueError, match="looks from one packed sequence into another"):
        Policy(model, packing=True)


@settings(derandomize=True, deadline=None)
@given(lengths=st.lists(st.integers(1, 50), max_size=40), budget=st.integers(1, 120))
def test_packs(lengths, budget):
    sizes = torch.tensor(lengths, dtype=torch.long)
    chosen = torch.arange(len(lengths))[::2]
    found = packs(sizes, chosen, budget)
    assert sorted(i for part in found for i in part.tolist()) == chosen.tolist()
    for part in found:
        assert len(part) == 1 or int(sizes[part].sum()) <= budget


def test_packs_are_few_and_even():
    lengths = torch.tensor([50, 40, 30, 30, 20, 20, 10])
    found = packs(lengths, torch.arange(7), 100)
    assert sorted(int(lengths[part].sum()) for part in found) == [100, 100]


def test_a_run_is_the_same_packed(small, tmp_path):
    found = []
    for packing in (False, True):
        config = replace(small, steps=2, out=str(tmp_path / f"{packing}"), controller="steer")
        config = replace(config, optim=replace(config.optim, packing=packing, micro_batch_tokens=90))
        Trainer(config, small.model.path).run()
        found.append(read_metrics(config.out))
    for a, b in zip(*found, strict=True):
        for name in {"entropy", "reward", "loss", "grad_norm"} & a.keys():
            assert a[name] == pytest.approx(b[name], rel=1e-3, abs=1e-5)
