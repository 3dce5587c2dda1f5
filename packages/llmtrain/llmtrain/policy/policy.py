"""The policy as the learner uses it: statistics of response tokens, through the model's body and the fused head."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from entrostat import Plan
from entrostat.support import Support

from ..kernels import HeadStats, RestrictedStats, head_loss, head_stats, restricted_stats
from ..process.ranks import Ranks
from ..sequences.batch import Batch, padded
from ..sequences.layout import LAYOUTS, Lay
from ..sequences.layout import padded as padded_layout
from .attention import attend_by_sequence, window_of

ALONE = Ranks()
IDLE = Batch(torch.tensor([0]), prompt_lengths=torch.tensor([1]), response_lengths=torch.tensor([0]))
"""What passes through the model of a rank that has no tokens."""


class Head(nn.Module):
    """The output layer. A module of its own, so that ZeRO-3 gathers its parameters only while it runs."""

    def __init__(
        self, weight: nn.Parameter, bias: nn.Parameter | None, scale: float = 1.0, softcap: float | None = None
    ) -> None:
        """scale: multiplies the logits, bias included. softcap: c of c·tanh(logit/c), applied after it."""
        super().__init__()
        self.weight, self.scale, self.softcap = weight, scale, softcap
        self.bias: Tensor | None = bias

    def forward(
        self,
        hidden: Tensor,
        targets: Tensor,
        temperature: float,
        *,
        plan: Plan | None = None,
        index: Any = None,
        support: Support | None = None,
        within: Support | None = None,
    ) -> HeadStats | RestrictedStats | tuple[Tensor, HeadStats]:
        """`head_stats` without a plan, `head_loss` with one; `restricted_stats` within a support."""
        weight, bias, softcap = self.weight, self.bias, self.softcap
        if self.scale != 1.0:
            hidden, bias = hidden * self.scale, None if bias is None else bias * self.scale
        if within is not None:
            return restricted_stats(hidden, weight, targets, within, temperature, bias=bias, softcap=softcap)
        if plan is None:
            return head_stats(hidden, weight, targets, temperature, bias=bias, softcap=softcap)
        mode = "fused" if plan.elementwise else "recompute"
        options: dict[str, Any] = {"bias": bias, "softcap": softcap, "mode": mode, "support": support}
        return head_loss(hidden, weight, targets, plan, index, temperature, **options)


class Policy(nn.Module):
    """A causal language model whose logits are never held all at once."""

    enter: Callable[..., Any] | None = None
    """What a loss goes through instead of the policy itself: an engine that wraps it."""
    support: Support | None = None
    """Of the truncated entropy that the controller's plans have a bonus for."""

    def __init__(self, model: PreTrainedModel, temperature: float = 1.0, *, layout: str = "padded") -> None:
        """layout: how sequences pass through the model together, see `llmtrain.sequences.layout`.

        Raises ValueError for a model whose states would depend on the layout.
        """
        super().__init__()
        head, config = model.get_output_embeddings(), model.config
        scale = (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)
        self.model = model
        bias, softcap = getattr(head, "bias", None), getattr(config, "final_logit_softcapping", None)
        self.output = Head(head.weight, bias, scale, softcap)
        self.temperature = temperature
        self.lay, self.slices = LAYOUTS[layout]
        if layout == "shared" and (window := window_of(model)):
            raise ValueError(
                f"layers of this model look back {window} tokens at most, which the mask of layout 'shared' does not: "
                "use --optim.layout packed"
            )
        if layout == "packed":
            attend_by_sequence(model)
        if self.lay is not padded_layout and self._depends():
            raise ValueError(f"sequences of this model see one another in layout {layout!r}: use --optim.layout padded")

    @torch.no_grad()
    def _depends(self) -> bool:
        """Whether the states of three sequences, two with the same prompt, are others than in rows of their own."""
        ids = torch.tensor([1, 2, 3, 4, 1, 2, 5, 6, 7, 8, 9, 1]) % int(self.model.config.vocab_size)
        three = Batch(ids, prompt_lengths=torch.tensor([2, 2, 1]), response_lengths=torch.tensor([2, 2, 3]))
        found, plain = (self.states(three, torch.arange(3), lay)[0] for lay in (self.lay, padded_layout))
        return bool((found - plain).abs().max() > 0.05 * plain.abs().max())

    @property
    def body(self) -> nn.Module:
        """The model without its output layer."""
        return self.model.base_model

    @property
    def head(self) -> Tensor:
        """Weight of the output layer (V, D)."""
        return self.output.weight

    def states(self, batch: Batch, sequences: Tensor, lay: Lay | None = None) -> tuple[Tensor, Tensor]:
        """Hidden states (n, D) that predict the response tokens of `sequences`, and these tokens (n,), in order.

        No sequences make a pass all the same, n = 0: the other ranks count on it.
        """
        device = self.model.device  # to ask the head would make ZeRO-3 gather it
        if not len(sequences):
            batch, sequences = IDLE, torch.tensor([0])
        ids, position, mask, row, column = (lay or self.lay)(batch, sequences)
        given = {"position_ids": position, "attention_mask": mask}
        told = {name: x.to(device) for name, x in given.items() if x is not None}
        hidden = self.body(input_ids=ids.to(device), **told, use_cache=False).last_hidden_state
        place = (row * hidden.shape[1] + column).to(device)  # threads add to hidden[row, column].grad in any order
        return nn.functional.embedding(place, hidden.flatten(0, 1)), batch.targets(sequences).to(device)

    def token_stats(self, batch: Batch, sequences: Tensor, lay: Lay | None = None) -> HeadStats:
        """Statistics of the response tokens of `sequences`, in the order of `batch.response_index(sequences)`."""
        through = self.enter if self.enter and torch.is_grad_enabled() else self
        return through(batch=batch, sequences=sequences, lay=lay)

    def loss(self, batch: Batch, sequences: Tensor, plan: Plan, index: Tensor) -> tuple[Tensor, HeadStats]:
        """The plan's loss on these tokens, `index` being their places in the plan, and their statistics.

        Gradients are made while the logits are at hand, except for surrogates that look across a sequence.
        """
        return (self.enter or self)(batch=batch, sequences=sequences, plan=plan, index=index)

    def forward(
        self,
        *,
        batch: Batch,
        sequences: Tensor,
        plan: Plan | None = None,
        index: Tensor | None = None,
        lay: Lay | None = None,
        within: Support | None = None,
    ) -> HeadStats | RestrictedStats | tuple[Tensor, HeadStats]:
        """`token_stats` without a plan, `loss` with one; those of the policy restricted to a support within it."""
        hidden, targets = self.states(batch, sequences, lay)
        options: dict[str, Any] = {"plan": plan, "index": index, "support": self.support, "within": within}
        return self.output(hidden, targets, self.temperature, **options)

    @torch.no_grad()
    def all_stats(self, batch: Batch, budget: int, ranks: Ranks = ALONE, layout: str = "") -> HeadStats:
        """`token_stats` of the whole batch without gradient, at most `budget` tokens at a time: (N,) each.

        All `ranks` make the same number of passes, each over its own batch. layout: another than the policy's own.
        """
        return HeadStats(*self._in_passes(len(HeadStats._fields), batch, budget, ranks, layout))

    @torch.no_grad()
    def all_restricted(self, batch: Batch, within: Support, budget: int, ranks: Ranks = ALONE) -> RestrictedStats:
        """Statistics of the whole batch under the policy restricted to `within`, (N,) each; as `all_stats`."""
        return RestrictedStats(*self._in_passes(len(RestrictedStats._fields), batch, budget, ranks, within=within))

    def _in_passes(
        self, rows: int, batch: Batch, budget: int, ranks: Ranks, layout: str = "", **options: Any
    ) -> Tensor:
        """What `forward` gives of all tokens, (rows, N)."""
        lay, slices_of = LAYOUTS[layout] if layout else (self.lay, self.slices)
        dtype = torch.float64 if self.head.dtype == torch.float64 else torch.float32
        out = torch.empty(rows, int(batch.response_lengths.sum()), dtype=dtype, device=self.head.device)
        slices = slices_of(batch, torch.arange(len(batch)), budget)
        for some in padded(slices, ranks.most(len(slices))):
            found = self(batch=batch, sequences=some, lay=lay, **options)
            out[:, batch.response_index(some).to(out.device)] = torch.stack(found)
        return out
