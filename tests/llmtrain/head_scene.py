"""What tests of the head share: a scene with all that it takes, and the answer of a dense softmax."""

import torch

from entrostat import Tokens, make, policy_stats

MODES = ("fused", "recompute", "stash")
OPTIONS = {
    "plain": {},
    "temperature": {"temperature": 0.7},
    "token temperatures": {"temperature": "tokens"},
    "bias": {"bias": True, "temperature": 0.7},
    "softcap": {"softcap": 0.8, "temperature": 0.7},
    "all": {"bias": True, "softcap": 2.0, "temperature": "tokens"},
}


def scene(n=29, d=6, v=41, dtype=torch.float64, spec="clip_higher+entropy_bonus", scale=1.0, device="cpu"):
    """(hidden, weight, bias, targets, plan): rollout log-probabilities a little off, a third of advantages zero.

    All are on the device.
    """
    g = torch.Generator().manual_seed(0)
    hidden, weight = scale * torch.randn(n, d, generator=g).double(), torch.randn(v, d, generator=g).double()
    bias, targets = torch.randn(v, generator=g).double(), torch.randint(v, (n,), generator=g)
    logp = torch.log_softmax(hidden @ weight.T, -1).gather(1, targets[:, None])[:, 0]
    old = logp + 0.3 * torch.randn(n, generator=g).double()
    advantage = torch.randn(n, generator=g).double() * (torch.arange(n) % 3 < 2)
    tokens = Tokens(logp=logp, old_logp=old, advantage=advantage, entropy=-logp)
    if dtype != torch.float64:
        tokens = Tokens(**{k: None if x is None else x.to(dtype) for k, x in vars(tokens).items()})
    tokens = Tokens(**{k: None if x is None else x.to(device) for k, x in vars(tokens).items()})
    leaves = [x.to(device, dtype).requires_grad_() for x in (hidden, weight, bias)]
    return *leaves, targets.to(device), make(spec).plan(tokens)


def dense(hidden, weight, bias, targets, plan, temperature, softcap):
    """Loss and gradients from all logits at once."""
    logits = hidden @ weight.T if bias is None else hidden @ weight.T + bias
    logits = logits if softcap is None else softcap * torch.tanh(logits / softcap)
    stats = statistics(
        logits / (temperature[:, None] if isinstance(temperature, torch.Tensor) else temperature), targets
    )
    leaves = [x for x in (hidden, weight, bias) if x is not None]
    loss = plan.loss(*stats[:2])
    return loss, stats, torch.autograd.grad(loss, leaves)


def statistics(logits, targets):
    """logp, H, S2, S2L, S2LL of each token."""
    stats = policy_stats(logits)
    return stats.logp.gather(1, targets[:, None])[:, 0], *stats[1:]


def close(a, b, tolerance):
    return (a.double() - b.double()).abs().max().item() <= tolerance * max(b.abs().max().item(), 1e-30)
