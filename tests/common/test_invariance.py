"""The update is the same however the mini-batch is ordered, cut into micro-batches, or spread over ranks.

Ranks are real gloo processes with uneven shares of the tokens, started once for each number of ranks.
"""

import math
import warnings

import pytest
import torch
import torch.distributed as dist
from helpers import PLANNED, sampled_tokens
from hypothesis import given, settings
from hypothesis import strategies as st
from test_plan import CONTROLLERS, IDS, planned
from tests.ranks import start_ranks

from entrostat import CompositionWarning, DistReduce, LocalReduce, StepStats, Tokens, make
from entrostat.about.gradients import gradient
from entrostat.sample_batch import Ragged, ragged_batch

pytestmark = pytest.mark.filterwarnings("ignore::entrostat.CompositionWarning")
SHARES = {1: [60], 2: [40, 20], 3: [20, 0, 40]}
"""Tokens of each rank, whole groups of 20; two ranks of four have none."""
SEEDS = range(3)
"""Ragged batches that ranks share; odd ones find the largest scores by histograms, even ones by exchange."""
TIED = 40
"""Batches full of ties."""
SCORES = [
    [3.0, -math.inf, 1.0, 1.0, 2.0, 1.0, 1.0, -2.0, 0.0, -0.0, math.inf, 1.0],
    [0.1 * i * (-1) ** i for i in range(12)],
]


def slope(spec, given, batch: Ragged, part: torch.Tensor, cut=None, reduce=None) -> torch.Tensor:
    """Gradient of the loss in the weight of a linear policy, over the tokens of this rank, a micro-batch at a time."""
    controller = make(spec, **given)
    controller.observe(StepStats(entropy=0.9, step=6, total_steps=8, epoch=2, epochs=3, planned=PLANNED))
    return gradient(controller, batch, part, cut, reduce)


def close(found: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-12) -> bool:
    return bool((found - expected).abs().max() <= tolerance * expected.abs().max())


@pytest.mark.parametrize(("spec", "given_settings"), CONTROLLERS, ids=IDS)
@settings(derandomize=True, deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_micro_batches_and_order_do_not_change_the_gradient(spec, given_settings, seed):
    batch = ragged_batch(seed)
    everything = torch.arange(batch.tokens.size)
    whole = slope(spec, given_settings, batch, everything)
    generator = torch.Generator().manual_seed(seed)
    sequences = batch.tokens.seq_id.unique()
    shuffled = sequences[torch.randperm(len(sequences), generator=generator)]
    for parts in {1, 2, 5, len(sequences)}:
        cut = [torch.isin(batch.tokens.seq_id, some).nonzero()[:, 0] for some in shuffled.tensor_split(parts)]
        assert close(slope(spec, given_settings, batch, everything, cut), whole), parts
    order = torch.cat([(batch.tokens.seq_id == s).nonzero()[:, 0] for s in shuffled])
    assert close(slope(spec, given_settings, batch, order), whole)


@pytest.mark.slow
def test_there_is_a_gradient_to_compare():
    """Every controller moves the policy in some of the ragged batches, and most in all of them."""
    for (spec, given_settings), name in zip(CONTROLLERS, IDS, strict=True):
        batches = [ragged_batch(seed) for seed in SEEDS]
        moved = [bool(slope(spec, given_settings, b, torch.arange(b.tokens.size)).abs().max() > 0) for b in batches]
        assert sum(moved) >= 2, name


def batch_of(dtype):
    return sampled_tokens(2, 60, dtype=dtype, seed=5)


def gradients(tokens, reduce=None) -> list[torch.Tensor]:
    """∂loss/∂logp and, where there is a bonus, ∂loss/∂H, for every controller."""
    grads = []
    for spec, given_settings in CONTROLLERS:
        plan = planned(spec, given_settings, tokens, reduce=reduce, seed=torch.tensor([3, 4]), step=9)
        d_logp, d_entropy = plan.coefficients(tokens.logp, tokens.entropy)
        grads.append(d_logp + (0 if d_entropy is None else 1e3 * d_entropy))
    return grads


def tied_batch(seed: int) -> Tokens:
    """Responses of uneven lengths whose tokens have, by turns, one and the same log-probability or advantage."""
    g = torch.Generator().manual_seed(seed)
    owner = torch.arange(9).repeat_interleave(torch.randint(1, 9, (9,), generator=g))
    n = len(owner)
    value, spread, side = torch.rand(3, n, generator=g, dtype=torch.float64)
    logp = -value if seed % 2 else -value[:1].expand(n).clone()
    advantage = spread[:1].expand(n).clone() if seed % 2 else torch.where(side < 0.4, 1.0, -1.0).double()
    position = torch.cat([torch.arange(len(part)) for part in owner.split(owner.bincount().tolist())])
    return Tokens(logp=logp, old_logp=logp - 0.1, advantage=advantage, seq_id=owner, position=position)


def tied(reduce: LocalReduce | None = None, rank: int = 0, world: int = 1) -> list[torch.Tensor]:
    """Coefficients and weights, by token, of the rules that compare tokens or responses with their mean."""
    found = []
    for seed in range(TIED):
        whole = tied_batch(seed)
        tokens = whole.select((whole.seq_id % world == rank).nonzero()[:, 0])
        coef = make("kl_cov", k=0.3).plan(tokens, reduce, seed=1).kl_coef
        weight = make("ppl_advantage", alpha=0.2).plan(tokens, reduce).weight
        found.append(torch.stack([coef.expand(tokens.size), weight.expand(tokens.size)]))
    return found


def chosen(reduce: LocalReduce, index: torch.Tensor, k: list[int]) -> torch.Tensor:
    scores, tie = torch.tensor(SCORES, dtype=torch.float64), torch.arange(12.0).flip(0)
    masks = [
        reduce.top_k(scores[:, index].to(dtype), torch.tensor(k), tie[index])
        for dtype in (torch.float32, torch.float64)
    ]
    return torch.stack(masks)


def worker(rank: int, world: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", CompositionWarning)
    index = torch.arange(60).split(SHARES[world])[rank]
    out = {dtype: gradients(batch_of(dtype).select(index), DistReduce()) for dtype in (torch.float32, torch.float64)}
    torch.save(out, f"{folder}/{rank}.pt")
    ragged = []
    for seed in SEEDS:
        batch = ragged_batch(seed)
        part = (batch.rank_of_group(world)[batch.tokens.group_id] == rank).nonzero()[:, 0]
        reduce = DistReduce(exchange=0) if seed % 2 else DistReduce()
        ragged.append(
            torch.stack(
                [slope(spec, given_settings, batch, part, reduce=reduce) for spec, given_settings in CONTROLLERS]
            )
        )
    torch.save(ragged, f"{folder}/ragged-{rank}.pt")
    torch.save(tied(DistReduce(), rank, world), f"{folder}/tied-{rank}.pt")
    mine = torch.arange(12).tensor_split(world)[rank]
    top = [chosen(DistReduce(exchange=e), mine, k) for e in (0, 1 << 16) for k in ([3, 1], [0, 12], [5, 7])]
    torch.save(top, f"{folder}/top-{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module", params=[pytest.param(n, marks=[pytest.mark.long] * (n != 2)) for n in SHARES])
def spread(request, tmp_path_factory):
    """A function that loads what every rank has saved under a name."""
    folder = tmp_path_factory.mktemp(f"ranks{request.param}")
    start_ranks(request.param, worker, str(folder))
    return lambda name: [torch.load(folder / f"{name}{rank}.pt") for rank in range(request.param)]


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_ranks_give_the_gradient_of_one_process(spread, dtype, tolerance):
    parts = spread("")
    for i, (name, expected) in enumerate(zip(IDS, gradients(batch_of(dtype)), strict=True)):
        joined = torch.cat([part[dtype][i] for part in parts], dim=-1)
        assert close(joined, expected, tolerance), name


@pytest.mark.slow
def test_ranks_with_ragged_batches_add_up_to_the_gradient_of_one_process(spread):
    parts = spread("ragged-")
    for seed in SEEDS:
        batch = ragged_batch(seed)
        summed = sum(part[seed] for part in parts)
        for i, (spec, given_settings) in enumerate(CONTROLLERS):
            whole = slope(spec, given_settings, batch, torch.arange(batch.tokens.size))
            assert close(summed[i], whole), f"{IDS[i]}, seed {seed}"


@pytest.mark.slow
def test_ranks_break_ties_as_one_process_does(spread):
    parts = spread("tied-")
    for seed, expected in enumerate(tied()):
        owner = tied_batch(seed).seq_id
        for rank, part in enumerate(parts):
            mine = expected[:, owner % len(parts) == rank]
            torch.testing.assert_close(part[seed], mine, rtol=0, atol=1e-9, msg=f"batch {seed}, rank {rank}")
        if not seed % 2:
            assert (expected[1] == 1).all()


@pytest.mark.slow
def test_ranks_choose_the_largest_of_all(spread):
    """Ties, infinities, zeros of both signs, k of 0 and k of all, by exchange and by histograms."""
    parts = spread("top-")
    for i, k in enumerate(2 * ([3, 1], [0, 12], [5, 7])):
        assert torch.equal(torch.cat([part[i] for part in parts], -1), chosen(LocalReduce(), torch.arange(12), k))
