"""Closed loops observe the same on all ranks: one mean entropy, and numbers that do not differ."""

import pytest
import torch
import torch.distributed as dist
from tests.ranks import start_ranks

import entrostat as es

PARTS = [torch.tensor([0.1, 0.2, 0.6]), torch.tensor([1.1])]
"""Entropies of the tokens of each rank: the mean of all is .5, that of the means .7."""


def worker(rank, size, folder, changes, said):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    others = {"step": 3, "total_steps": 9, "planned": {"a": 0.5, "b": torch.tensor([1.0, 2.0])}}
    if rank:
        others |= changes
    if said:
        with pytest.raises(ValueError, match=said):
            es.StepStats.over_ranks(PARTS[rank], es.DistReduce(), **others)
    else:
        stats = es.StepStats.over_ranks(PARTS[rank], es.DistReduce(), **others)
        assert float(stats.entropy) == pytest.approx(0.5)
        assert (stats.step, stats.planned) == (3, others["planned"])
    dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"step": 4}, r"^StepStats.step differs between ranks"),
        ({"epoch": 1}, r"^StepStats.epoch differs between ranks"),
        ({"planned": {"a": 0.5}}, r"^StepStats.planned differs between ranks"),
        ({"planned": {"a": 0.4, "b": torch.tensor([1.0, 2.0])}}, r"^StepStats.planned\['a'\] differs"),
        ({"planned": {"a": 0.5, "b": torch.tensor([1.0, 2.5])}}, r"^StepStats.planned\['b'\] differs"),
    ],
)
def test_ranks_observe_the_same_or_all_hear_why_not(tmp_path, changes, said):
    start_ranks(2, worker, str(tmp_path), changes, said)


def test_one_process_has_its_own_mean():
    assert float(es.StepStats.over_ranks(PARTS[0], es.LocalReduce(), step=1).entropy) == pytest.approx(0.3)
