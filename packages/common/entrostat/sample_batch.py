"""Mini-batch of a small linear policy, on which rules of controllers can be tried: ragged, in groups, off-policy.

batch = ragged_batch(seed)
batch.tokens                                   every field of Tokens, float64
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .advantages import get_advantage
from .numbers.policy_moments import policy_stats
from .numbers.support import Support, truncated_logp
from .tokens import Tokens

PROXY = Support(min_p=0.02)
"""Policy of `Tokens.proxy_logp` for controllers that name none."""
TURN = 3
"""Tokens of a turn; the last one of a response may have fewer."""


@dataclass(frozen=True, eq=False)
class Ragged:
    """A linear policy and a mini-batch of responses of random lengths in groups of random sizes."""

    features: Tensor
    """(N, D)."""
    weight: Tensor
    """(D, V): logits are features @ weight."""
    old_weight: Tensor
    """The same of the policy that made the rollout."""
    action: Tensor
    """(N,)."""
    tokens: Tokens
    owner: Tensor
    """A number of each group that says on which rank it lies, (groups,)."""

    def rank_of_group(self, world: int) -> Tensor:
        return self.owner % world


def ragged_batch(seed: int, features: int = 6, actions: int = 7, moved: float = 0.3) -> Ragged:
    """Return one to six prompts with one to five responses of one to nine tokens, after the policy `moved` a little."""
    g = torch.Generator().manual_seed(seed)

    def integers(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high + 1, shape, generator=g)

    groups = int(integers(1, 6, 1))
    group_of_sequence = torch.arange(groups).repeat_interleave(integers(1, 5, groups))
    sequences = len(group_of_sequence)
    lengths = integers(1, 9, sequences)
    reward = integers(0, 3, sequences).double() / 3
    owner = torch.arange(sequences).repeat_interleave(lengths)
    n = len(owner)
    x = torch.randn(n, features, generator=g, dtype=torch.float64)
    weight, noise, other = torch.randn(3, features, actions, generator=g, dtype=torch.float64)
    old_weight = weight + moved * noise
    new, old, ref = (policy_stats(x @ w) for w in (weight, old_weight, weight + 0.3 * other))
    action = torch.multinomial(old.logp.exp(), 1, generator=g)
    moments = {name: getattr(new, name) for name in ("entropy", "s2", "s2l", "s2ll")}
    old_logp = old.logp.gather(-1, action)[:, 0]
    position = torch.arange(n) - (lengths.cumsum(0) - lengths)[owner]
    tokens = Tokens(
        logp=new.logp.gather(-1, action)[:, 0],
        old_logp=old_logp,
        ref_logp=ref.logp.gather(-1, action)[:, 0],
        proxy_logp=truncated_logp(old.logp, PROXY).gather(-1, action)[:, 0],
        rollout_logp=old_logp
        + 0.3 * torch.randn(old_logp.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64),
        advantage=get_advantage("grpo")(reward, group_of_sequence)[owner],
        reward=reward[owner],
        old_entropy=old.entropy,
        **moments,
        seq_id=torch.randperm(1000, generator=g)[owner],
        group_id=group_of_sequence[owner],
        position=position,
        turn_id=position // TURN,
    )
    return Ragged(x, weight, old_weight, action[:, 0], tokens, integers(0, 3, groups))
