"""The policy as the learner uses it: statistics of response tokens, through the model's body and the fused head."""

import torch
from torch import Tensor
from transformers import PreTrainedModel

from entrostat import Plan

from .batch import Batch, micro_batches
from .kernels import HeadStats, head_loss, head_stats

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

    def _states(self, batch: Batch, sequences: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states (n, D) that predict the response tokens of `sequences`, and these tokens (n,), in order."""
        device = self.head.device
        ids = batch.padded(sequences)
        # Padding is on the right, where no token of a causal model looks: no attention mask is needed.
        hidden = self.body(input_ids=ids.to(device), use_cache=False).last_hidden_state
        column = torch.arange(ids.shape[1] - 1)
        first = batch.prompt_lengths[sequences, None] - 1  # the last prompt token predicts the first response token
        predicts = (column >= first) & (column < first + batch.response_lengths[sequences, None])
        return hidden[:, :-1][predicts.to(device)], ids[:, 1:][predicts].to(device)

    def token_stats(self, batch: Batch, sequences: Tensor) -> HeadStats:
        """Statistics of the response tokens of `sequences`, in the order of `batch.response_index(sequences)`."""
        hidden, targets = self._states(batch, sequences)
        return head_stats(hidden, self.head, targets, self.temperature)

    def loss(self, batch: Batch, sequences: Tensor, plan: Plan, index: Tensor) -> tuple[Tensor, HeadStats]:
        """The plan's loss on these tokens, `index` being their places in the plan, and their statistics.

        Gradients are made while the logits are at hand, except for surrogates that look across a sequence.
        """
        hidden, targets = self._states(batch, sequences)
        mode = "fused" if plan.elementwise else "recompute"
        return head_loss(hidden, self.head, targets, plan, index, self.temperature, mode=mode)

    @torch.no_grad()
    def all_stats(self, batch: Batch, budget: int) -> HeadStats:
        """`token_stats` of the whole batch without gradient, at most `budget` tokens at a time: (N,) each."""
        dtype = torch.float64 if self.head.dtype == torch.float64 else torch.float32
        size = len(HeadStats._fields), int(batch.response_lengths.sum())
        out = torch.empty(size, dtype=dtype, device=self.head.device)
        for some in micro_batches(batch.lengths, torch.arange(len(batch)), budget):
            out[:, batch.response_index(some).to(out.device)] = torch.stack(self.token_stats(batch, some))
        return HeadStats(*out)
