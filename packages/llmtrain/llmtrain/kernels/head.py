"""Log-probability, entropy and collision moments of each token, and the gradient of a loss on them, in chunks.

    hidden X (N, D), weight W (V, D), targets y (N)
      chunk of tokens ─► logits (n, V) ─► five statistics (n) ─► dlogits (n, V) ─► dX, dW

One chunk of logits exists at a time, so memory is n·V rather than N·V. Statistics are fp32 (float64 for float64 input).

    mode        needs                                        matrix work    logits held
    fused       a plan, which gives coefficients at once     6·N·D·V        a chunk
    recompute   any loss of logp and H                       8·N·D·V        a chunk
    stash       any loss of logp and H, and memory           6·N·D·V        all

Rows without a gradient cost 2·N·D·V in each mode; a softcap adds 2·N·D·V for rows with one.
"""

from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from entrostat import Plan
from entrostat.numbers.support import Support

from .gradients import Gradients
from .projection import Projection, chunk_tokens, of_rows
from .rows import statistics
from .truncated import truncated_loss

MODES = ("fused", "recompute", "stash")


class HeadStats(NamedTuple):
    """Statistics of p = softmax(W·x / temperature) for each token, (N,) each; logarithms in nats."""

    logp: Tensor
    """log p(y)."""
    entropy: Tensor
    """H = −Σ p log p."""
    s2: Tensor
    """Σ p², without gradient, as the next two."""
    s2l: Tensor
    """Σ p² log p."""
    s2ll: Tensor
    """Σ p² (log p)²."""


def head_stats(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    temperature: float | Tensor = 1.0,
    *,
    bias: Tensor | None = None,
    softcap: float | None = None,
    mode: str = "recompute",
    chunk: int | None = None,
    logits_dtype: torch.dtype | None = None,
    group: dist.ProcessGroup | None = None,
    trusted: bool = False,
) -> HeadStats:
    """Return statistics of the tokens `targets` (N,) under the head `weight` (V, D) at hidden states (N, D).

    logp and entropy are differentiable with respect to hidden, weight and bias; the backward pass skips rows whose
    gradient is zero.

    temperature: a number, or one for each token (N,).  bias: (V,).  softcap: c of c·tanh(logit/c).
    mode: recompute (compute logits again in the backward pass) or stash (keep them).
    chunk: tokens whose logits are held at once; None chooses it by memory.
    logits_dtype: dtype of the logits; None for fp32 (float64 for float64 weights). torch.bfloat16 keeps 8 bits of
    each logit and, on CUDA with bf16 weights, takes half the memory. Sums are fp32 in both cases.
    group: ranks that hold equal parts of the vocabulary; `weight` and `bias` are this rank's part, targets are global.
    trusted: the targets were checked before; on a GPU the host would wait for a check here.
    Raises ValueError for shapes that do not fit, targets outside the vocabulary, an unknown mode, and a temperature,
    softcap or chunk that is not positive.
    """
    options = softcap, group, logits_dtype
    _check(hidden, weight, bias, targets, temperature, *options, chunk, trusted)
    _check_mode(mode, ("recompute", "stash"))
    chunk = chunk or chunk_tokens(weight.shape[0], weight.device)
    stash = mode == "stash" and torch.is_grad_enabled()
    return HeadStats(*_HeadStats.apply(hidden, weight, bias, targets, temperature, options, chunk, stash))


def head_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    plan: Plan,
    index: Tensor | None = None,
    temperature: float | Tensor = 1.0,
    *,
    bias: Tensor | None = None,
    softcap: float | None = None,
    mode: str = "fused",
    chunk: int | None = None,
    logits_dtype: torch.dtype | None = None,
    group: dist.ProcessGroup | None = None,
    trusted: bool = False,
    support: Support | None = None,
    live: Tensor | None = None,
) -> tuple[Tensor, HeadStats]:
    """Return the plan's loss (a scalar) on the tokens selected by `index`, and their statistics without gradient.

    Mode "fused" computes gradients in the forward pass, while a chunk's logits exist, and the backward pass only
    scales them. It needs surrogates that treat each token separately.

    support: support of the plan's bonus on truncated entropies, if it has one; this computes logits once more, not
    divided over ranks. live: on the CPU, False for tokens that cannot have a gradient, (N,); in mode "fused" a GPU
    then computes the gradients of the others without asking which of them are 0. Other arguments are as in
    `head_stats`.
    """
    _check_mode(mode, MODES)
    if plan.truncated_coef is not None:
        if support is None or group is not None:
            raise ValueError("a bonus on truncated entropies needs `support`, and the whole vocabulary on this rank")
        rest, stats = head_loss(
            hidden,
            weight,
            targets,
            plan.changed(truncated_coef=None),
            index,
            temperature,
            bias=bias,
            softcap=softcap,
            mode=mode,
            chunk=chunk,
            logits_dtype=logits_dtype,
            trusted=trusted,
            live=live,
        )
        coefficient = plan.truncated_coefficient(index)
        assert coefficient is not None
        bonus = truncated_loss(hidden, weight, coefficient, support, temperature, bias=bias, softcap=softcap)
        return rest + bonus, stats
    if mode == "fused" and torch.is_grad_enabled():
        options = softcap, group, logits_dtype
        _check(hidden, weight, bias, targets, temperature, *options, chunk, trusted)
        chunk = chunk or chunk_tokens(weight.shape[0], weight.device)
        index = torch.arange(plan.size, device=hidden.device) if index is None else index
        loss, *stats = _FusedLoss.apply(hidden, weight, bias, targets, temperature, options, plan, index, live, chunk)
        return loss, HeadStats(*stats)
    stats = head_stats(
        hidden,
        weight,
        targets,
        temperature,
        bias=bias,
        softcap=softcap,
        mode="recompute" if mode == "fused" else mode,
        chunk=chunk,
        logits_dtype=logits_dtype,
        group=group,
        trusted=trusted,
    )
    return plan.loss(stats.logp, stats.entropy, index), HeadStats(*(x.detach() for x in stats))


def _check(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    temperature: float | Tensor,
    softcap: float | None,
    group: dist.ProcessGroup | None,
    logits_dtype: torch.dtype | None,
    chunk: int | None,
    trusted: bool,
) -> None:
    if hidden.ndim != 2 or weight.ndim != 2 or hidden.shape[1] != weight.shape[1] or targets.shape != hidden.shape[:1]:
        raise ValueError(
            "the head takes hidden (N, D), weight (V, D), targets (N,); "
            f"got {tuple(hidden.shape)}, {tuple(weight.shape)}, {tuple(targets.shape)}"
        )
    vocabulary = weight.shape[0]
    if bias is not None and bias.shape != (vocabulary,):
        raise ValueError(f"bias must be (V,) = ({vocabulary},); got {tuple(bias.shape)}")
    if isinstance(temperature, Tensor):
        if temperature.shape != targets.shape:
            raise ValueError(
                f"temperature must be a number or (N,) = ({len(targets)},); got {tuple(temperature.shape)}"
            )
        if not bool((temperature > 0).all()):
            raise ValueError("the head needs a positive temperature for each token")
    elif not temperature > 0:
        raise ValueError(f"the head needs a positive temperature; got {temperature}")
    if softcap is not None and not softcap > 0:
        raise ValueError(f"softcap must be positive; got {softcap}")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be at least 1; got {chunk}")
    if logits_dtype not in (None, torch.bfloat16, _wide(weight)):
        raise ValueError(f"logits_dtype must be torch.bfloat16, {_wide(weight)} or None; got {logits_dtype}")
    vocabulary *= 1 if group is None else dist.get_world_size(group)
    if not trusted and not bool(((targets >= 0) & (targets < vocabulary)).all()):
        raise ValueError(f"targets must be tokens from 0 to {vocabulary - 1}; mask others by a coefficient of 0")


def _check_mode(mode: str, modes: tuple[str, ...]) -> None:
    if mode not in modes:
        raise ValueError(f"mode must be one of {', '.join(modes)}; got {mode!r}")


class _HeadStats(torch.autograd.Function):
    """Autograd function of modes recompute and stash."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        temperature: float | Tensor,
        options: tuple[Any, ...],
        chunk: int,
        stash: bool,
    ) -> tuple[Tensor, ...]:
        projection = Projection(weight, bias, *options)
        out = hidden.new_empty(5, hidden.shape[0], dtype=_wide(hidden))
        kept = hidden.new_empty(hidden.shape[0], weight.shape[0], dtype=options[-1] or out.dtype) if stash else None
        for start in range(0, hidden.shape[0], chunk):
            rows = slice(start, start + chunk)
            logits = projection.logits(hidden[rows], of_rows(temperature, rows))
            if kept is not None:
                kept[rows] = logits
            out[:, rows] = statistics(projection.sums(logits, targets[rows])[0])
            del logits  # frees memory for the next chunk
        ctx.save_for_backward(hidden, weight, bias, targets, kept)
        ctx.settings = temperature, options, chunk
        stats = out.unbind()
        ctx.mark_non_differentiable(*stats[2:])
        return stats

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, kept = ctx.saved_tensors
        temperature, options, chunk = ctx.settings
        projection = Projection(weight, bias, *options)
        d_logp, d_entropy = grads[:2]
        gradients = Gradients(hidden, projection, ctx.needs_input_grad, d_logp.dtype)
        live = ((d_logp != 0) | (d_entropy != 0)).nonzero()[:, 0]
        for rows in live.split(chunk):
            heat = of_rows(temperature, rows)
            logits = projection.logits(hidden[rows], heat) if kept is None else kept[rows]
            sums, scratch = projection.sums(logits, targets[rows])
            parts = targets[rows], d_logp[rows], d_entropy[rows], heat
            gradients.add(projection.dlogits(scratch, sums, *parts), hidden[rows], rows)
            del logits, scratch
        return (*gradients.out(), *(None,) * 5)


class _FusedLoss(torch.autograd.Function):
    """Autograd function of mode fused: the loss and its gradients in one pass over the chunks."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        temperature: float | Tensor,
        options: tuple[Any, ...],
        plan: Plan,
        index: Tensor,
        live: Tensor | None,
        chunk: int,
    ) -> tuple[Tensor, ...]:
        projection = Projection(weight, bias, *options)
        dtype = _wide(hidden)
        out = hidden.new_empty(5, hidden.shape[0], dtype=dtype)
        gradients = Gradients(hidden, projection, ctx.needs_input_grad, dtype)
        for start in range(0, hidden.shape[0], chunk):
            rows = slice(start, start + chunk)
            heat = of_rows(temperature, rows)
            sums, scratch = projection.sums(projection.logits(hidden[rows], heat), targets[rows])
            logp, entropy, *_ = out[:, rows] = statistics(sums)
            d_logp, d_entropy = plan.coefficients(logp, entropy, index[rows])
            d_entropy = torch.zeros_like(d_logp) if d_entropy is None else d_entropy
            some = _live_rows(live, rows, d_logp, d_entropy)
            if len(some) < len(logp):
                scratch, sums = scratch.of(some), sums.of(some)
            parts = targets[rows][some], d_logp[some], d_entropy[some], of_rows(heat, some)
            place = some + start
            gradients.add(projection.dlogits(scratch, sums, *parts), hidden[place], place)
            del scratch
        ctx.save_for_backward(*gradients.out())
        stats = out.unbind()
        ctx.mark_non_differentiable(*stats)
        return plan.loss(stats[0], stats[1], index), *stats

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if d_loss.device.type != "cpu":  # to look whether it is 1, the host would wait; a copy may not fit
            gradients = [None if x is None else x.mul_(d_loss.to(x.dtype)) for x in gradients]
        elif d_loss.item() != 1.0:
            gradients = [None if x is None else x * d_loss.to(x.dtype) for x in gradients]
        return (*gradients, *(None,) * 7)


def _live_rows(live: Tensor | None, rows: slice, d_logp: Tensor, d_entropy: Tensor) -> Tensor:
    """Return the rows of a chunk that may have a gradient, (m,): those of `live` on a GPU, elsewhere all that do."""
    if live is None or d_logp.device.type == "cpu":
        return ((d_logp != 0) | (d_entropy != 0)).nonzero()[:, 0]
    return live[rows].nonzero()[:, 0].to(d_logp.device, non_blocking=True)


def _wide(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32
