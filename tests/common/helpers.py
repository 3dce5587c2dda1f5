"""Tokens to test with."""

import torch

from entrostat import Tokens, policy_stats


def sampled_tokens(*shape: int, actions: int = 12, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tokens:
    """Tokens (*shape) drawn from random softmax policies, the rollout policy a little off the current one."""
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
    values = {
        "logp": new.logp.gather(-1, chosen).squeeze(-1),
        "old_logp": old.logp.gather(-1, chosen).squeeze(-1),
        "advantage": advantage,
        "entropy": new.entropy,
        "old_entropy": old.entropy,
        "s2": new.s2,
        "s2l": new.s2l,
        "s2ll": new.s2ll,
    }
    values = {key: value.to(dtype) for key, value in values.items()}
    return Tokens(**values, seq_id=torch.arange(n) // 4, position=torch.arange(n) % 4)


def select(tokens: Tokens, index: torch.Tensor) -> Tokens:
    """The tokens at `index`."""
    return Tokens(**{k: None if v is None else v[..., index] for k, v in vars(tokens).items()})
