"""The update is the same however the mini-batch is spread over ranks: real gloo processes, uneven shares."""

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from helpers import sampled_tokens, select
from test_plan import CONTROLLERS, IDS, planned

from entrostat import DistReduce

SHARES = {1: [60], 2: [44, 16], 4: [24, 0, 32, 4]}
"""Tokens of each rank, whole sequences of 4; one rank of four has none."""


def batch(dtype):
    return sampled_tokens(2, 60, dtype=dtype, seed=5)


def gradients(tokens, reduce=None) -> list[torch.Tensor]:
    """∂loss/∂logp and, where there is a bonus, ∂loss/∂H, for every controller."""
    grads = []
    for spec, settings in CONTROLLERS:
        plan = planned(spec, settings, tokens, reduce=reduce, seed=torch.tensor([3, 4]), step=9)
        d_logp, d_entropy = plan.coefficients(tokens.logp, tokens.entropy)
        grads.append(d_logp + (0 if d_entropy is None else 1e3 * d_entropy))
    return grads


def worker(rank: int, world: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world)
    torch.set_num_threads(1)
    index = torch.arange(60).split(SHARES[world])[rank]
    out = {dtype: gradients(select(batch(dtype), index), DistReduce()) for dtype in (torch.float32, torch.float64)}
    torch.save(out, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module", params=sorted(SHARES))
def spread(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"ranks{request.param}")
    mp.spawn(worker, args=(request.param, str(folder)), nprocs=request.param)
    return [torch.load(folder / f"{rank}.pt") for rank in range(request.param)]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_ranks_give_the_gradient_of_one_process(spread, dtype, tolerance):
    whole = gradients(batch(dtype))
    for i, (name, expected) in enumerate(zip(IDS, whole, strict=True)):
        joined = torch.cat([part[dtype][i] for part in spread], dim=-1)
        difference = (joined - expected).abs().max() / expected.abs().max()
        assert difference <= tolerance, name
