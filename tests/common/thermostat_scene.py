"""Bandit, plant and flows of the tests of thermostat."""

import math

import torch

from entrostat import StepStats, Tokens, entropy_change, make, policy_stats


def observed(entropy: float, spec: str = "thermostat", **settings):
    controller = make(spec, **settings)
    controller.observe(StepStats(entropy=entropy))
    return controller


def flow_of(plan, tokens: Tokens) -> torch.Tensor:
    """Mean exact flow of a finished plan, token-mean: its sum, as it is scaled by 1/N."""
    return entropy_change.planned(tokens, plan).total.sum(-1)


def mean_bonus_flow(t: Tokens) -> torch.Tensor:
    return entropy_change.bonus(t.entropy, t.s2, t.s2l, t.s2ll).mean(-1)


class Bandit:
    """N independent softmax states, each sampled once: the plant that a plan's flow is about."""

    def __init__(self, seed: int, n: int = 30, actions: int = 7) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.logits = 1.5 * torch.randn(n, actions, generator=generator, dtype=torch.float64)
        self.arm = torch.randint(actions, (n, 1), generator=generator)
        self.advantage = torch.randn(n, generator=generator, dtype=torch.float64)
        self.shift = 0.3 * torch.randn(n, generator=generator, dtype=torch.float64)

    def tokens(self) -> Tokens:
        s = policy_stats(self.logits)
        logp = s.logp.gather(-1, self.arm)[:, 0]
        old = (logp + self.shift).clamp(max=0)
        return Tokens(
            logp=logp, old_logp=old, advantage=self.advantage, entropy=s.entropy, s2=s.s2, s2l=s.s2l, s2ll=s.s2ll
        )

    def gradient(self, plan) -> torch.Tensor:
        """Return the gradient of N times the loss in the logits, by autograd."""
        logits = self.logits.clone().requires_grad_()
        stats = policy_stats(logits)
        loss = plan.loss(stats.logp.gather(-1, self.arm)[:, 0], stats.entropy) * len(logits)
        return torch.autograd.grad(loss, logits)[0]

    def entropy(self, step: torch.Tensor) -> float:
        return float(policy_stats(self.logits + step).entropy.mean())


def closed_loop(
    controller,
    gain: float,
    steps: int,
    drift: float = 0.0,
    updates: int = 1,
    late: int = 0,
    told: int | None = None,
    reach: float = math.inf,
    start: float = 1.0,
) -> list[float]:
    """A plant H⁺ = H + gain·(summed flow) + drift that does what the controller asks for, within its reach.

    late: age of its readings, in rollout steps. told: what the controller is told of it.
    """
    entropy, planned, seen = start, {}, []
    part = controller.parts[0]
    for step in range(steps):
        reading = ([start] * (late + 1) + seen)[step]
        controller.observe(StepStats(entropy=reading, delay=told, planned=planned))
        wanted = updates * float(part.wanted_flow())
        flow = min(max(wanted, -reach), reach)
        planned = {"thermostat/flow": flow, "thermostat/updates": float(updates)}
        if reach < math.inf:
            planned |= {"thermostat/reach": reach}
        entropy = max(entropy + gain * flow + drift, 0.0)
        seen.append(entropy)
    return seen
