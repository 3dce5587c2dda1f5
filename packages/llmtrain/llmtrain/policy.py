"""The policy as the learner uses it: statistics of response tokens, through the model's body and the fused head."""

import torch
from torch import Tensor
from transformers import PreTrainedModel

from .batch import Batch, micro_batches
from .kernels import HeadStats, head_stats

UNSUPPORTED = ("final_logit_softcapping", "logit_scale", "logits_scaling")
"""Settings of models that change the logits after the head, which the fused head does not apply."""


class Policy:
    """A causal language model whose logits are never held all at once."""

    def __init__(self, model: PreTrainedModel, temperature: float = 1.0) -> None:
        for name in UNSUPPORTED:
            if getattr(model.config, name, None) not in (None, 1, 1.0):
                raise ValueError(f"the fused head does not support models with {name}")
        self.model = model
        self.body = model.base_model
        self.temperature = temperature

    @property
    def head(self) -> Tensor:
        """Weight of the output layer (V, D)."""
        return self.model.get_output_embeddings().weight

    def token_stats(self, batch: Batch, sequences: Tensor) -> HeadStats:
        """Statistics of the response tokens of `sequences`, in the order of `batch.response_index(sequences)`."""
        device = self.head.device
        ids = batch.padded(sequences)
        # Padding is on the right, where no token of a causal model looks: no attention mask is needed.
        hidden = self.body(input_ids=ids.to(device), use_cache=False).last_hidden_state
        column = torch.arange(ids.shape[1] - 1)
        first = batch.prompt_lengths[sequences, None] - 1  # the last prompt token predicts the first response token
        predicts = (column >= first) & (column < first + batch.response_lengths[sequences, None])
        return head_stats(
            hidden[:, :-1][predicts.to(device)], self.head, ids[:, 1:][predicts].to(device), self.temperature
        )

    @torch.no_grad()
    def all_stats(self, batch: Batch, budget: int) -> HeadStats:
        """`token_stats` of the whole batch without gradient, at most `budget` tokens at a time: (N,) each."""
        dtype = torch.float64 if self.head.dtype == torch.float64 else torch.float32
        size = len(HeadStats._fields), int(batch.response_lengths.sum())
        out = torch.empty(size, dtype=dtype, device=self.head.device)
        for some in micro_batches(batch.lengths, torch.arange(len(batch)), budget):
            out[:, batch.response_index(some).to(out.device)] = torch.stack(self.token_stats(batch, some))
        return HeadStats(*out)
