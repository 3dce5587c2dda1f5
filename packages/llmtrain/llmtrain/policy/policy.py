"""Policy for the learner: statistics of response tokens, from the model's body and the fused head."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from entrostat import Plan
from entrostat.numbers.support import Support

from ..kernels import HeadStats, RestrictedStats, head_loss, head_stats, restricted_stats
from ..process.ranks import Ranks
from ..sequences.batch import Batch, padded
from ..sequences.layout import LAYOUTS, Lay
from .attention import (
    NAME,
    alone_in_a_row,
    attend_as_before,
    attend_by_sequence,
    longer_than_alike,
    longest_alike,
    window_of,
)
from .logits import PLAIN, Transform, body_of, family, prove, transform_of

ALONE = Ranks()
IDLE = Batch(torch.tensor([0]), prompt_lengths=torch.tensor([1]), response_lengths=torch.tensor([0]))
"""Batch for a forward pass on a rank that has no tokens."""


class Head(nn.Module):
    """Output layer. A module of its own, so that ZeRO-3 gathers its parameters only while it runs."""

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None, transform: Transform = PLAIN) -> None:
        super().__init__()
        self.weight, self.transform = weight, transform
        self.bias: Tensor | None = bias

    @property
    def scale(self) -> float:
        """Factor of the hidden states."""
        return self.transform.before * self.transform.scale

    @property
    def softcap(self) -> float | None:
        """c in c·tanh(logit/c), or None."""
        return self.transform.cap

    def forward(
        self,
        hidden: Tensor,
        targets: Tensor,
        temperature: float,
        *,
        plan: Plan | None = None,
        index: Any = None,
        live: Tensor | None = None,
        support: Support | None = None,
        within: Support | None = None,
    ) -> HeadStats | RestrictedStats | tuple[Tensor, HeadStats]:
        """Return `restricted_stats` if `within` is given, `head_loss` if a plan is given, else `head_stats`."""
        weight, bias, softcap = self.weight, self.bias, self.softcap
        if self.scale != 1.0:
            hidden = hidden * self.scale
        if self.transform.scale != 1.0 and bias is not None:
            bias = bias * self.transform.scale
        if within is not None:
            return restricted_stats(hidden, weight, targets, within, temperature, bias=bias, softcap=softcap)
        if plan is None:
            return head_stats(hidden, weight, targets, temperature, bias=bias, softcap=softcap, trusted=True)
        mode = "fused" if plan.elementwise else "recompute"
        options: dict[str, Any] = {"bias": bias, "softcap": softcap, "mode": mode, "support": support}
        options |= {"live": live, "trusted": True}
        return head_loss(hidden, weight, targets, plan, index, temperature, **options)


class Policy(nn.Module):
    """Causal language model whose logits are never in memory all at once."""

    enter: Callable[..., Any] | None = None
    """Forward function of an engine that wraps the policy, called for losses instead of the policy itself."""
    support: Support | None = None
    """Support of the truncated entropy that the controller's plans have a bonus for."""

    def __init__(self, model: PreTrainedModel, temperature: float = 1.0, *, layout: str = "padded") -> None:
        """layout: name of a layout in `llmtrain.sequences.layout`.

        Raises ValueError for a model whose logits are not found, see `logits`, or whose hidden states would depend on
        the layout.
        """
        super().__init__()
        self.model, self.temperature, self.layout = model, temperature, layout
        self.lay, self.slices = LAYOUTS[layout]
        if layout == "shared" and (window := window_of(model)):
            raise ValueError(
                f"layers of this model look back at most {window} tokens, which layout 'shared' does not support: "
                "use --optim.layout packed"
            )
        if layout != "padded" and (reason := alone_in_a_row(model)):
            raise ValueError(f"layout {layout!r} does not suit {family(model)}, use --optim.layout padded: {reason}")
        self.longest = longest_alike(model)
        """Upper limit for the tokens of a sequence; None: none."""
        transform = transform_of(model)
        head = model.get_output_embeddings()
        self.tokens = len(head.weight)
        """Tokens of the output layer."""
        self.output = Head(head.weight, getattr(head, "bias", None), transform)
        attend_by_sequence(model)
        self.tells = model.config._attn_implementation == NAME and window_of(model) is None
        """True if attention is told the lengths of sequences in a row, which transformers would ask the device for."""
        while True:
            try:
                return prove(self)
            except ValueError:
                if self.tells:
                    self.tells = False
                elif not attend_as_before(model):
                    raise

    @property
    def body(self) -> nn.Module:
        """Model without its output layer."""
        return body_of(self.model)

    @property
    def head(self) -> Tensor:
        """Weight of the output layer (V, D)."""
        return self.output.weight

    def states(self, batch: Batch, sequences: Tensor, lay: Lay | None = None) -> tuple[Tensor, Tensor]:
        """Return the hidden states (n, D) that predict the response tokens of `sequences`, and these tokens (n,).

        Makes a pass even without sequences, n = 0, because the other ranks wait for it.
        """
        if self.longest and len(sequences):
            longest = int((batch.prompt_lengths + batch.response_lengths)[sequences].max())
            if longest > self.longest:
                raise ValueError(longer_than_alike(self.model, longest, self.longest))
        device = self.model.device  # the head's device would make ZeRO-3 gather it
        if not len(sequences):
            batch, sequences = IDLE, torch.tensor([0])
        ids, position, mask, row, column, lengths = (lay or self.lay)(batch, sequences)
        given = {"position_ids": position, "attention_mask": mask}
        # Copies that do not block: with others the host would wait for all work that the device still has.
        told = {name: x.to(device, non_blocking=True) for name, x in given.items() if x is not None}
        if lengths is not None and self.tells:
            told["attention_mask"] = lengths[None, None, None]  # stays on the CPU
        hidden = self.body(input_ids=ids.to(device, non_blocking=True), **told, use_cache=False).last_hidden_state
        # hidden[row, column] has a nondeterministic gradient.
        place = (row * hidden.shape[1] + column).to(device, non_blocking=True)
        targets = self._checked(batch.targets(sequences)).to(device, non_blocking=True)
        return nn.functional.embedding(place, hidden.flatten(0, 1)), targets

    def _checked(self, targets: Tensor) -> Tensor:
        """Return the targets (n,), on the CPU. Raises ValueError if one is no token of the model."""
        if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < self.tokens:
            raise ValueError(f"targets must be tokens from 0 to {self.tokens - 1}")
        return targets

    def token_stats(self, batch: Batch, sequences: Tensor, lay: Lay | None = None) -> HeadStats:
        """Return statistics of the response tokens of `sequences`, ordered as `batch.response_index(sequences)`."""
        through = self.enter if self.enter and torch.is_grad_enabled() else self
        return through(batch=batch, sequences=sequences, lay=lay)

    def loss(
        self, batch: Batch, sequences: Tensor, plan: Plan, index: Tensor, live: Tensor | None = None
    ) -> tuple[Tensor, HeadStats]:
        """Return the plan's loss on the response tokens of `sequences`, and their statistics.

        index: indices of these tokens in the plan, (n,). Gradients are computed while the logits are in memory, except
        for sequence-level surrogates. live: on the CPU, False for tokens that cannot have a gradient, (n,).
        """
        return (self.enter or self)(batch=batch, sequences=sequences, plan=plan, index=index, live=live)

    def forward(
        self,
        *,
        batch: Batch,
        sequences: Tensor,
        plan: Plan | None = None,
        index: Tensor | None = None,
        live: Tensor | None = None,
        lay: Lay | None = None,
        within: Support | None = None,
    ) -> HeadStats | RestrictedStats | tuple[Tensor, HeadStats]:
        """Return `token_stats` without a plan, `loss` with one; with `within`, statistics within that support."""
        hidden, targets = self.states(batch, sequences, lay)
        index = None if index is None else index.to(hidden.device, non_blocking=True)
        options: dict[str, Any] = {"plan": plan, "index": index, "live": live, "support": self.support}
        options["within"] = within
        return self.output(hidden, targets, self.temperature, **options)

    @torch.no_grad()
    def all_stats(self, batch: Batch, budget: int, ranks: Ranks = ALONE, layout: str = "") -> HeadStats:
        """Return `token_stats` of the whole batch without gradient, at most `budget` tokens at a time: (N,) each.

        All `ranks` make the same number of passes, each over its own batch. layout: empty for the policy's own.
        """
        return HeadStats(*self._in_passes(len(HeadStats._fields), batch, budget, ranks, layout))

    @torch.no_grad()
    def all_restricted(self, batch: Batch, within: Support, budget: int, ranks: Ranks = ALONE) -> RestrictedStats:
        """Return statistics of the whole batch under the policy restricted to `within`, (N,) each; like `all_stats`."""
        return RestrictedStats(*self._in_passes(len(RestrictedStats._fields), batch, budget, ranks, within=within))

    def _in_passes(
        self, rows: int, batch: Batch, budget: int, ranks: Ranks, layout: str = "", **options: Any
    ) -> Tensor:
        """Return the statistics from `forward` for all tokens, (rows, N)."""
        lay, slices_of = LAYOUTS[layout] if layout else (self.lay, self.slices)
        dtype = torch.float64 if self.head.dtype == torch.float64 else torch.float32
        out = torch.empty(rows, int(batch.response_lengths.sum()), dtype=dtype, device=self.head.device)
        slices = slices_of(batch, torch.arange(len(batch)), budget)
        for some in padded(slices, ranks.most(len(slices))):
            found = self(batch=batch, sequences=some, lay=lay, **options)
            out[:, batch.response_index(some).to(out.device, non_blocking=True)] = torch.stack(found)
        return out
