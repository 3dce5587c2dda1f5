"""docs/library.md on several ranks: DDP's gradient is that of one process which holds all tokens."""

import pytest
import torch
import torch.distributed as dist
from tests.ranks import start_ranks
from torch.nn.parallel import DistributedDataParallel

import entrostat as es

N, ACTIONS = 24, 7


def data():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(N, 5, generator=g, dtype=torch.float64)
    ids = torch.arange(N)
    rest = {"advantage": torch.randn(N, generator=g, dtype=torch.float64), "seq_id": ids // 3, "position": ids % 3}
    return x, torch.randint(ACTIONS, (N,), generator=g), rest


def gradient(model, part, reduce, ranks):
    x, taken, rest = data()
    drawn = es.make("clip_cov", k=0.3, omega_low=-9.0, omega_high=9.0)
    controller = es.chain(es.make("clip_higher"), drawn, es.make("thermostat", target=1.5))

    def of(logits):
        logp = logits.log_softmax(-1)
        return logp.gather(-1, taken[part, None])[:, 0], -(logp.exp() * logp).sum(-1)

    with torch.no_grad():
        logits = model(x[part])
        moments = es.policy_stats(logits)
        logp, entropy = of(logits)
    numbers = {name: getattr(moments, name) for name in ("s2", "s2l", "s2ll")}
    tokens = es.Tokens(
        logp=logp, old_logp=logp - 0.1, entropy=entropy, **numbers, **{name: v[part] for name, v in rest.items()}
    )
    assert controller.needs <= {name for name, value in vars(tokens).items() if value is not None}
    for step in range(2):
        controller.observe(es.StepStats.over_ranks(entropy, reduce, step=step, total_steps=4))
    plan = controller.plan(tokens, reduce, seed=0, step=1)
    (plan.loss(*of(model(x[part]))) * ranks).backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


def linear():
    torch.manual_seed(1)
    return torch.nn.Linear(5, ACTIONS, dtype=torch.float64)


def worker(rank, size, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    parts = [torch.arange(0, 15), torch.arange(15, N)]
    found = gradient(DistributedDataParallel(linear()), parts[rank], es.DistReduce(), size)
    expected = gradient(linear(), torch.arange(N), es.LocalReduce(), 1)
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)
    dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::entrostat.CompositionWarning")
def test_the_gradient_of_ddp_is_that_of_one_process(tmp_path):
    start_ranks(2, worker, str(tmp_path))
