"""Tokens sampled from a policy in training, with the effect of each on the entropy, measured and estimated.

A "model" is a bandit after a few rollouts of GRPO; its tokens come from one more rollout, before its first step.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from entrostat import entropy_change, get_advantage, policy_stats
from entrostat.numbers.draws import salt, uniform

from ..config import Config
from ..simulator import simulate
from ..trajectory import Array
from .registry import Effort

MODELS: dict[str, tuple[int, tuple[float, ...]]] = {
    "alike": (16, (2.0,)),
    "mixed": (16, (1.0, 2.0, 4.0, 8.0)),
    "many arms": (256, (1.0, 2.0, 4.0, 8.0)),
}
"""Bandits in place of language models: number of arms, and standard deviations of the initial logits, each for an equal
share of the states. Like contexts of a language model, the states of `mixed` range from open to almost certain."""
STATES = 512
GROUP = 16
STEP = 0.5
"""η on the mean gradient of a state, as in NOISY."""
ROLLOUTS = 10
BLOCKS = 16
"""Blocks of states for standard errors: states are independent, the tokens of one are not."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample:
    """N tokens; every array is (N,), entropies in nats."""

    p: Array
    entropy: Array
    """H of the token's distribution before the step."""
    advantage: Array
    own: Array
    """Measured change of H if the state takes this token's step alone."""
    whole: Array
    """Measured change of H if the state takes the mean step of its group."""
    estimates: dict[str, Array]
    """Change of H by each estimator, first order in the step."""


def blocks(values: Array) -> Array:
    """Return values of tokens, (N,), as (BLOCKS, N/BLOCKS): every BLOCKS-th state is in the same block."""
    return values.reshape(-1, BLOCKS, GROUP).swapaxes(0, 1).reshape(BLOCKS, -1)


def about(effort: Effort) -> str:
    """Return the independent samples of a figure of tokens, as text."""
    states = effort.of(STATES, 128)
    return f"{GROUP} tokens of each of {states} states, one run per spread of logits; ± over {BLOCKS} blocks of states"


def sample_tokens(effort: Effort, model: str) -> Sample:
    """Sample a group of GROUP tokens in each state of the model, after ROLLOUTS rollouts of GRPO."""
    arms, spreads = MODELS[model]
    states = effort.of(STATES, 128) // len(spreads)
    trained = [
        simulate(Config(arms=arms, right_arms=arms // 4, logit_std=spread, states=states, rollouts=ROLLOUTS))
        for spread in spreads
    ]
    p = torch.cat([torch.from_numpy(run.probabilities[0]) for run in trained])
    success = torch.cat([torch.from_numpy(run.success[0]) for run in trained])
    state, sample = torch.arange(p.shape[0]).unsqueeze(-1), torch.arange(GROUP)
    arm = torch.searchsorted(p.cumsum(-1), uniform(salt("token"), state, sample)).clamp(max=arms - 1)
    reward = (uniform(salt("token reward"), state, sample) < success.gather(-1, arm)).double()
    group = torch.arange(p.shape[0]).repeat_interleave(GROUP)
    advantage = get_advantage("grpo")(reward.flatten().unsqueeze(0), group).reshape(arm.shape)
    return measure_tokens(p.clamp(min=torch.finfo(p.dtype).tiny).log(), arm, advantage)


def measure_tokens(logp: Tensor, arm: Tensor, advantage: Tensor) -> Sample:
    """Measure the tokens `arm` (S, n) with their advantages, of S distributions log π (S, K)."""
    stats = policy_stats(logp)
    direction = torch.nn.functional.one_hot(arm, logp.shape[-1]).double() - logp.exp().unsqueeze(-2)  # e_o − p
    step = STEP / GROUP * advantage.unsqueeze(-1) * direction
    own = policy_stats(logp.unsqueeze(-2) + step).entropy - stats.entropy.unsqueeze(-1)
    whole = policy_stats(logp + step.sum(-2)).entropy - stats.entropy
    token = logp.gather(-1, arm)
    h, s2, s2l = (x.unsqueeze(-1) for x in (stats.entropy, stats.s2, stats.s2l))
    flows = {
        "exact": entropy_change.exact(token, h, s2, s2l, advantage),
        "own logit": entropy_change.own_logit(token, h, advantage),
        "Ω": entropy_change.steer(token, h, advantage),
        "OPEFO": entropy_change.opefo(token, h, advantage),
        "Cov": -entropy_change.covariance(token, advantage, token.mean(), advantage.mean()),
    }

    def flat(x: Tensor) -> Array:
        return x.expand(arm.shape).flatten().numpy()

    return Sample(
        p=flat(token.exp()),
        entropy=flat(h),
        advantage=flat(advantage),
        own=flat(own),
        whole=flat(whole.unsqueeze(-1)),
        estimates={name: STEP / GROUP * flat(flow) for name, flow in flows.items()},
    )
