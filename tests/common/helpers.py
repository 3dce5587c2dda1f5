"""Tokens to test with."""

import torch

from entrostat import Tokens, policy_stats
from entrostat.numbers.support import Support, truncated_logp

PLANNED = {"siren/entropy": 2.0, "siren/updates": 1.0}
"""Info of earlier plans, for rules that wait for it."""


def sampled_tokens(*shape: int, actions: int = 12, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tokens:
    """Tokens (*shape) drawn from random softmax policies, the rollout policy a little off the current one.

    Sequences have 4 tokens in two turns, and groups 5 sequences.
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
    position = torch.arange(n) % 4
    return Tokens(**values, seq_id=sequence, group_id=sequence // 5, position=position, turn_id=position // 2)
