"""Fields of Tokens from verl's batches, and statistics of the logits from its FSDP engine.

Shapes: B responses of a micro-batch, T their padded length. verl's batches hold padded tensors, (B, T), or jagged ones;
outputs of its engine are jagged over prompt and response.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor
from verl.utils import tensordict_utils as tu
from verl.utils import torch_functional
from verl.workers.utils.padding import no_padding_2_padding, response_from_nested

from ..numbers.policy_moments import policy_stats
from ..numbers.support import Support, truncated_entropy

MOMENTS = ("s2", "s2l", "s2ll")
FROM_LOGITS = (*MOMENTS, "truncated_entropy")
"""Fields that are computed from the logits."""
GROUP = "entrostat_group"
"""Key of the integer of each response's prompt in a mini-batch that verl splits."""
OLD_ENTROPY = "old_entropy"
"""Key of the entropies of the pass that computes the old log-probabilities."""
COLUMNS = {OLD_ENTROPY: OLD_ENTROPY, "ref_logp": "ref_log_prob", "rollout_logp": "rollout_log_probs"}
"""Key in verl's batch of each field with one number per token."""
ROWS_AT_ONCE = 512
"""Number of tokens whose logits are processed at once."""


def micro_batch_fields(output: Mapping[str, Any], data: TensorDict, names: Sequence[str]) -> dict[str, Tensor]:
    """Return the fields of Tokens in a micro-batch, (B, T) or one per response, (B,).

    output: of verl's engine; its entropy has a gradient. names: fields that the engine's statistics of the logits are.
    """
    fields = {field: padded(data, key) for field, key in COLUMNS.items() if key in data}
    if "rm_scores" in data:
        fields["reward"] = padded(data, "rm_scores").sum(-1)
    if GROUP in data:
        fields["group_id"] = data[GROUP]
    elif "uid" in data:
        fields["group_id"] = group_ids(tu.get(data, "uid"), data.device)
    if "entropy" in output:
        fields["entropy"] = no_padding_2_padding(output["entropy"], data)
    if names:
        statistics = no_padding_2_padding(output["sum_pi_squared"], data)
        fields |= dict(zip(names, statistics.unbind(-1), strict=True))
    return fields


def padded(data: TensorDict, key: str) -> Tensor:
    """Return an entry of verl's batch, (B, T), as verl's `ppo_loss` pads it."""
    found: Tensor = data.select(key).to_padded_tensor()[key]
    return found


def group_ids(uids: Sequence[Any], device: torch.device | None) -> Tensor:
    """Return an integer for each prompt of the micro-batch, (B,), from verl's ids of the prompts."""
    number = {uid: i for i, uid in enumerate(dict.fromkeys(map(str, uids)))}
    return torch.tensor([number[str(uid)] for uid in uids], device=device)


def keep_old_entropy(data: TensorDict, entropy: Tensor) -> None:
    """Put the entropies of the pass over the rollout, jagged, into a batch with the same responses."""
    mask = data["response_mask"]
    data[OLD_ENTROPY] = response_from_nested(entropy, mask) if mask.is_nested else no_padding_2_padding(entropy, data)


def rollout_entropies(data: TensorDict) -> Tensor:
    """Return the entropy at each token of this process's part of the rollout, (N,), nats.

    Without the entropies of the pass over the rollout, −log π_old, whose expectation is the entropy.
    """
    mask = padded(data, "response_mask").bool()
    return padded(data, OLD_ENTROPY)[mask] if OLD_ENTROPY in data else -padded(data, "old_log_probs")[mask]


@contextmanager
def logit_statistics(names: Sequence[str], support: Support | None) -> Iterator[None]:
    """Let verl's FSDP engine return these fields, stacked in the last dimension, where it returns Σp² of each token.

    Its option `calculate_sum_pi_squared` must be on. No-op without names.
    """
    kept = torch_functional.calculate_sum_pi_squared_from_logits
    if names:
        torch_functional.calculate_sum_pi_squared_from_logits = _statistics(names, support)  # type: ignore[assignment]
    try:
        yield
    finally:
        torch_functional.calculate_sum_pi_squared_from_logits = kept


def _statistics(names: Sequence[str], support: Support | None) -> Callable[[Tensor], Tensor]:
    def some(logits: Tensor) -> Tensor:
        logits = logits if logits.dtype == torch.float64 else logits.float()
        found: dict[str, Tensor] = {}
        if not set(names).isdisjoint(MOMENTS):
            with torch.no_grad():
                found = policy_stats(logits)._asdict()
        if support is not None:
            found["truncated_entropy"] = truncated_entropy(logits, support)
        return torch.stack([found[name] for name in names], -1)

    def statistics(logits: Tensor) -> Tensor:
        """Return the fields at logits (..., V), (..., number of names)."""
        flat = torch.cat([some(part) for part in logits.flatten(0, -2).split(ROWS_AT_ONCE)])
        return flat.unflatten(0, logits.shape[:-1])

    return statistics
