"""Tokens to test with."""

from dataclasses import dataclass

import torch

from entrostat import Tokens, get_advantage, policy_stats
from entrostat.support import Support, truncated_logp

PLANNED = {"siren/entropy": 2.0, "siren/updates": 1.0}
"""What plans made before said, for rules that wait for it."""


def sampled_tokens(*shape: int, actions: int = 12, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tokens:
    """Tokens (*shape) drawn from random softmax policies, the rollout policy a little off the current one.

    Sequences have 4 tokens and groups 5 sequences.
    """
    g = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(*shape, actions, generator=g, dtype=torch.float64)
    old_logits = logits + 0.3 * torch.randn(*shape, actions, generator=g, dtype=torch.float64)
    new, old = policy_stats(logits), policy_stats(old_logits)
    action = torch.distributions.Categorical(logits=old.logp).sample
    torch.manual_seed(seed)
    chosen = action().unsqueeze(-1)
    advantage = torch.randn(*shape, generator=g, dtype=torch.float64)
    advantage[..., ::5] = 0.0
    n = shape[-1]
    sequence = torch.arange(n) // 4
    reward = torch.randint(0, 2, (*shape[:-1], int(sequence[-1]) + 1), generator=g)[..., sequence]
    values = {
        "logp": new.logp.gather(-1, chosen).squeeze(-1),
        "old_logp": old.logp.gather(-1, chosen).squeeze(-1),
        "advantage": advantage,
        "entropy": new.entropy,
        "old_entropy": old.entropy,
        "s2": new.s2,
        "s2l": new.s2l,
        "s2ll": new.s2ll,
        "reward": reward,
        "ref_logp": old.logp.gather(-1, (chosen + 1) % actions).squeeze(-1),
        "truncated_entropy": new.entropy / 2,
        "proxy_logp": truncated_logp(old.logp, Support(min_p=0.02)).gather(-1, chosen).squeeze(-1),
        "rollout_logp": old.logp.gather(-1, chosen).squeeze(-1) + 0.2 * torch.randn(*shape, generator=g),
    }
    values = {key: value.to(dtype) for key, value in values.items()}
    return Tokens(**values, seq_id=sequence, group_id=sequence // 5, position=torch.arange(n) % 4)


def select(tokens: Tokens, index: torch.Tensor) -> Tokens:
    """The tokens at `index`."""
    return Tokens(**{k: None if v is None else v[..., index] for k, v in vars(tokens).items()})


@dataclass(frozen=True, eq=False)
class Ragged:
    """A linear policy and a mini-batch of responses of random lengths in groups of random sizes."""

    features: torch.Tensor
    """(N, D)."""
    weight: torch.Tensor
    """(D, V): logits are features @ weight."""
    action: torch.Tensor
    """(N,)."""
    tokens: Tokens
    owner: torch.Tensor
    """A number of each group that says on which rank it lies."""

    def rank_of_group(self, world: int) -> torch.Tensor:
        return self.owner % world


def other_rollout(logp: torch.Tensor, seed: int) -> torch.Tensor:
    """log π of a rollout engine that is a little off."""
    return logp + 0.3 * torch.randn(logp.shape, generator=torch.Generator().manual_seed(seed), dtype=logp.dtype)


def ragged_batch(seed: int, features: int = 6, actions: int = 7, moved: float = 0.3) -> Ragged:
    """One to six prompts with one to five responses of one to nine tokens, after the policy has `moved` a little."""
    g = torch.Generator().manual_seed(seed)

    def integers(low: int, high: int, *shape: int) -> torch.Tensor:
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
    new, old, ref = (policy_stats(x @ w) for w in (weight, weight + moved * noise, weight + 0.3 * other))
    action = torch.multinomial(old.logp.exp(), 1, generator=g)
    moments = {name: getattr(new, name) for name in ("entropy", "s2", "s2l", "s2ll")}
    tokens = Tokens(
        logp=new.logp.gather(-1, action)[:, 0],
        old_logp=old.logp.gather(-1, action)[:, 0],
        ref_logp=ref.logp.gather(-1, action)[:, 0],
        proxy_logp=truncated_logp(old.logp, Support(min_p=0.02)).gather(-1, action)[:, 0],
        rollout_logp=other_rollout(old.logp.gather(-1, action)[:, 0], seed),
        advantage=get_advantage("grpo")(reward, group_of_sequence)[owner],
        reward=reward[owner],
        old_entropy=old.entropy,
        **moments,
        seq_id=torch.randperm(1000, generator=g)[owner],
        group_id=group_of_sequence[owner],
        position=torch.arange(n) - (lengths.cumsum(0) - lengths)[owner],
    )
    return Ragged(x, weight, action[:, 0], tokens, integers(0, 3, groups))
