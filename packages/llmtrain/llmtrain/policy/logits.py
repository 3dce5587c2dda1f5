"""Logits of hidden states, as a model makes them: found by experiment, and proved on a few tokens.

    logits = cap · tanh(scale · (W (before · h) + b) / cap)         without a cap: scale · (W (before · h) + b)

Families put these numbers under many names, at many places of a configuration, and multiply here what they divide by
there. So nothing is looked up. While the model runs on a few tokens, a hook on its output layer reads the layer's input
and puts known numbers in the place of its output; what the model makes of them shows the scale and the cap. Then a
policy's log-probabilities and entropies are compared with those of the model's own logits.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from ..process.text import one_line
from ..sequences.batch import Batch
from ..sequences.layout import LAYOUTS

if TYPE_CHECKING:
    from .policy import Policy

ROWS, LENGTH, SAME = 3, 8, 4
"""Sequences of the test, their tokens, and how many of these the first two sequences share at their beginning."""
SMALL, LARGE = 2.0**-20, 2.0**40
"""Number that no cap changes by a digit, and one that ends up at it."""
EXACT = 1e-4
"""Largest relative error of the found transformation, in fp32."""
ROUNDING = {torch.float64: 1e-8, torch.float32: 2e-5, torch.float16: 1e-3, torch.bfloat16: 4e-3}
"""Largest mean gap of log-probabilities and of entropies, as a share of the largest logit, by the model's dtype.

A model rounds its states and its logits to its dtype, so that larger logits differ by more. Layouts that are right
differ by up to 4e-7 in fp32 and 9e-4 in bf16 (SmolLM2, 30 layers), sequences that see each other by 2e-3 or more.
"""
FLOOR = 2e-5
"""Gap (nats) that is always allowed: rounding of logarithms in fp32."""


class Transform(NamedTuple):
    """Numbers of the formula above."""

    before: float = 1.0
    scale: float = 1.0
    cap: float | None = None


PLAIN = Transform()


class Probe(NamedTuple):
    """Findings of a pass with a hook on the output layer."""

    hidden: Tensor
    """Input of the output layer."""
    logits: Tensor
    """Logits that the model made of the numbers put in the place of its output."""


def family(model: PreTrainedModel) -> str:
    return f"{type(model).__name__} (model_type {model.config.model_type})"


def sample(model: PreTrainedModel) -> Tensor:
    """Return token ids (ROWS, LENGTH); the first two rows begin alike."""
    layers: list[Any] = [model.get_output_embeddings(), model.get_input_embeddings()]
    rows = min(len(layer.weight) for layer in layers)
    special = {0, *(x for x in ids_of(model.config.get_text_config()) if x < rows)}
    usable = [x for x in range(min(rows, 4 * ROWS * LENGTH)) if x not in special] or [0]
    ids = torch.tensor([usable[(7 * i + 1) % len(usable)] for i in range(ROWS * LENGTH)]).view(ROWS, LENGTH)
    ids[1, :SAME] = ids[0, :SAME]
    return ids


def ids_of(config: Any) -> Iterator[int]:
    """Yield the token ids that a configuration gives a meaning, such as padding and images."""
    for name, value in vars(config).items():
        if name.endswith(("_token_id", "_token_index")):
            yield from [x for x in (value if isinstance(value, list) else [value]) if isinstance(x, int)]


@contextmanager
def still(model: nn.Module) -> Iterator[None]:
    """Run a model without dropout and gradients, and without changing the global RNG."""
    training = {module: module.training for module in model.modules()}
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            model.eval()
            yield
    finally:
        for module, was in training.items():
            module.training = was


def transform_of(model: PreTrainedModel) -> Transform:
    """Return how a model makes its logits.

    Raises:
        ValueError: if it does so in a way that the formula above does not describe.
    """
    head = model.get_output_embeddings()
    if head is None or not hasattr(head, "weight"):
        raise ValueError(f"{family(model)} has no output layer for tokens: it cannot be trained here")
    ids = sample(model).to(model.device)
    numbers = torch.tensor([0.0, SMALL, -SMALL, 1.0, -1.0, 8.0, 64.0, LARGE], device=model.device)
    try:
        with still(model):
            found = probe(model, head, ids, numbers)
            body = body_of(model)(input_ids=ids, use_cache=False).last_hidden_state
    except Exception as error:
        raise ValueError(f"{family(model)} does not run on a few tokens: {in_a_line(error)}") from error
    if found is None:
        raise ValueError(
            f"{family(model)} does not call its output layer once for each token: it cannot be trained here"
        )
    if found.logits.shape[-1] != len(head.weight):
        raise ValueError(
            f"{family(model)}: {found.logits.shape[-1]} logits of {len(head.weight)} rows of its output layer"
        )
    made = found.logits.double()[:, :, :1]
    if not torch.equal(found.logits.double(), made.expand_as(found.logits)) or not torch.equal(
        made, made[:1].expand_as(made)
    ):
        raise ValueError(
            f"{family(model)} changes the logits of some tokens and not of others: it cannot be trained here"
        )
    scale, cap = scale_and_cap(made[0, :, 0].tolist())
    transform = Transform(
        before_of(model, body, found.hidden),
        exactly(scale, model),
        None if cap is None else exactly(cap, model),
    )
    expected = apply(numbers.double(), transform)
    if not torch.allclose(made[0, :, 0], expected, rtol=EXACT, atol=EXACT * SMALL):
        shown = ", ".join(f"{x:g} to {y:.4g}" for x, y in zip(numbers.tolist(), made[0, :, 0].tolist(), strict=True))
        raise ValueError(f"{family(model)} takes logits from {shown}: neither a factor nor a cap")
    return transform


def probe(model: PreTrainedModel, head: nn.Module, ids: Tensor, numbers: Tensor) -> Probe | None:
    """Return what a pass shows with `numbers` (LENGTH,), one for each position, in the place of the head's output.

    None if the output layer is not called once for each token.
    """
    seen: list[Tensor] = []

    def replaced(_: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        seen.append(given[0])
        return numbers[None, :, None].expand(len(ids), -1, output.shape[-1]).clone()

    hook = head.register_forward_hook(replaced)
    try:
        logits = logits_of(model, ids)
    finally:
        hook.remove()
    return Probe(seen[0], logits) if len(seen) == 1 and seen[0].shape[:2] == ids.shape else None


def body_of(model: PreTrainedModel) -> nn.Module:
    """Return a model without its output layer."""
    bodies = (model.base_model, getattr(model, "model", model), model.get_decoder())
    return next((body for body in bodies if body is not model), model)


def logits_of(model: PreTrainedModel, ids: Tensor) -> Tensor:
    """Return the model's own logits (rows, tokens, V)."""
    logits = model(input_ids=ids, use_cache=False).logits
    assert isinstance(logits, Tensor)
    return logits


def before_of(model: PreTrainedModel, body: Tensor, hidden: Tensor) -> float:
    """Return the factor between the states of a model's body and the input of its output layer."""
    if body.shape != hidden.shape:
        raise ValueError(
            f"{family(model)} has a layer between its body and its output layer: it cannot be trained here"
        )
    x, y = body.double().flatten(), hidden.double().flatten()
    if not (torch.isfinite(x).all() and torch.isfinite(y).all()):
        raise ValueError(f"{family(model)} gives states that are not finite: its weights are not")
    factor = float((x @ y) / (x @ x))
    error = float((y - factor * x).norm() / y.norm())
    loose = max(EXACT, 4 * torch.finfo(hidden.dtype).eps)
    if not error < loose:
        raise ValueError(
            f"{family(model)} has a layer between its body and its output layer, whose input differs by {error:.0%}: "
            "it cannot be trained here"
        )
    return exactly(factor, model, loose)


def exactly(found: float, model: PreTrainedModel, loose: float = 1e-6) -> float:
    """Return 1, or a number of the configuration or the ratio of two, if that is `found` up to rounding."""
    values = [x for x in vars(model.config.get_text_config()).values() if type(x) in (int, float) and x]
    numbers = [1.0, *map(float, values)]
    near = [1.0, *numbers, *(1 / x for x in numbers), *(x / y for x in numbers for y in numbers)]
    return next((x for x in near if abs(x - found) < loose * abs(found)), found)


def scale_and_cap(made: list[float]) -> tuple[float, float | None]:
    """Return scale and cap, from what became of the numbers in `transform_of`."""
    scale, last = made[1] / SMALL, made[-1]
    return scale, None if abs(last) > 0.5 * abs(scale) * LARGE else abs(last)


def apply(logits: Tensor, transform: Transform) -> Tensor:
    scaled = transform.scale * logits
    return scaled if transform.cap is None else transform.cap * torch.tanh(scaled / transform.cap)


def prove(policy: "Policy") -> None:
    """Raise ValueError unless the statistics of a policy are those of its model's own logits, on a few tokens."""
    model, ids = policy.model, sample(policy.model)
    with still(policy):
        try:
            own = logits_of(model, ids.to(model.device))
        except Exception as error:
            raise ValueError(f"{family(model)} cannot be trained here: {in_a_line(error)}") from error
        logits = own.to(torch.promote_types(model.dtype, torch.float32))
        begins, allowed = logits[:2, :SAME], FLOOR + ROUNDING[model.dtype] * float(logits.abs().max())
        if not float((begins[0] - begins[1]).abs().mean()) <= allowed:
            raise ValueError(f"tokens of {family(model)} see those after them: it is no causal language model")
        logp = (logits / policy.temperature).log_softmax(-1)
        gap, failed = gap_of(policy, ids, logp)
        if gap <= allowed / min(1, policy.temperature):
            return
        said = failed or f"log-probabilities or entropies differ by {gap:.2g} nats from those of its own logits"
        if policy.layout != "padded" and gap_of(policy, ids, logp, "padded")[0] <= allowed:
            raise ValueError(
                f"layout {policy.layout!r} does not suit {family(model)}, use --optim.layout padded: {said}"
            )
    raise ValueError(f"{family(model)} cannot be trained here: {said}")


def gap_of(policy: "Policy", ids: Tensor, logp: Tensor, layout: str = "") -> tuple[float, str]:
    """Return the larger mean gap, of log-probabilities or entropies (nats), between a policy and `logp` (R, T, V).

    If the policy's pass fails it is infinite, and the error is told.
    """
    prompts, lengths = torch.tensor([SAME, SAME, 1]), torch.tensor([LENGTH, LENGTH - 1, LENGTH - 2])
    rows = [row[:length] for row, length in zip(ids, lengths.tolist(), strict=True)]
    batch = Batch(torch.cat(rows), prompts, lengths - prompts)
    try:
        found = policy.token_stats(batch, torch.arange(ROWS), LAYOUTS[layout][0] if layout else None)
    except Exception as error:
        return math.inf, in_a_line(error)
    parts = list(zip(range(ROWS), prompts.tolist(), lengths.tolist(), strict=True))
    own = torch.cat([logp[i, start - 1 : end - 1] for i, start, end in parts])
    targets = torch.cat([ids[i, start:end] for i, start, end in parts]).to(own.device)
    taken = own.gather(-1, targets[:, None])[:, 0]
    entropy = -(own.exp() * own).nan_to_num().sum(-1)
    gaps = [float((a.to(b) - b).abs().mean()) for a, b in ((found.logp, taken), (found.entropy, entropy))]
    return math.inf if any(map(math.isnan, gaps)) else max(gaps), ""


def in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(error)}"
