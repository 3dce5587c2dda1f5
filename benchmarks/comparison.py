"""Comparison of a name with one function of others, on the same tensors in float64."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from entrostat import StepStats, Tokens, get_advantage, make
from entrostat.about.description import names
from entrostat.advantages import advantage_uses
from entrostat.integrations.packing import pack

ROWS, LENGTH, GROUP = 12, 9, 4
ROUNDING = 1e-9
"""Differences below this are written as rounding."""
Fields = dict[str, Tensor]
Theirs = Callable[[Fields, Tensor], Tensor]
"""Loss of the other's function: fields of the batch, (B, T) each, the entropy and log π with a gradient."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One name against one function of others."""

    spec: str
    """Names joined by +, as in `make`, or an advantage."""
    peer: str
    """Project and function."""
    theirs: Theirs
    told: Callable[[Fields], Fields] = lambda batch: {}
    """Inputs of an advantage beyond rewards and groups, from the fields of the batch."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    preset: str = "paper"
    reason: str = ""
    """Cause of a difference that is not rounding, or condition of the comparison."""
    tolerance: float = ROUNDING
    entropy: float | None = None
    """Entropy that the controller observes first, for closed loops."""
    clone: str = ""
    """Repository that the function is taken from; empty if it is installed."""

    @property
    def key(self) -> str:
        given = ", ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.settings.items()
        )
        preset = "" if self.preset == "paper" else f" [{self.preset}]"
        return f"{self.spec}{preset}{f' ({given})' if given else ''}"

    def measure(self) -> tuple[float, float | None]:
        """Return the differences of loss and gradient; the second is None for an advantage."""
        batch = fields()
        mask = batch["mask"]
        if self.spec.split()[0] in names("advantage"):
            rows = torch.arange(ROWS) // GROUP
            length = {"length": mask.sum(-1)} if "length" in advantage_uses(self.spec) else {}
            ours = get_advantage(self.spec)(batch["score"], rows, **length, **self.told(batch))
            of_tokens = ours if len(ours) == int(mask.sum()) else ours.repeat_interleave(mask.sum(-1))
            return float((of_tokens - self.theirs(batch, batch["logp"])[mask]).abs().max()), None
        logp = batch["logp"].clone().requires_grad_()
        entropy = batch["entropy"].clone().requires_grad_()
        loss = self.theirs({**batch, "entropy": entropy}, logp)
        theirs = torch.autograd.grad(loss, (logp, entropy), allow_unused=True)
        names_of_fields = (
            "logp",
            "old_logp",
            "ref_logp",
            "rollout_logp",
            "advantage",
            "entropy",
            "old_entropy",
            "s2",
            "s2l",
            "reward",
        )
        packed = pack(mask, {name: batch[name] for name in names_of_fields} | {"seq_id": torch.arange(ROWS)})
        controller = make(self.spec, self.preset, **self.settings)
        if self.entropy is not None:
            controller.observe(StepStats(entropy=self.entropy, step=0, total_steps=10))
        plan = controller.plan(Tokens(**packed))
        ours_loss = plan.loss(packed["logp"], packed["entropy"])
        ours = plan.coefficients(packed["logp"], packed["entropy"])
        gaps = [relative_gap(x, None if y is None else y[mask]) for x, y in zip(ours, theirs, strict=True)]
        return float((ours_loss - loss.detach()).abs()), max(gaps)


def relative_gap(ours: Tensor | None, theirs: Tensor | None) -> float:
    """Return the largest difference of two gradients, relative to theirs; None is a gradient of 0."""
    if ours is None or theirs is None:
        return float(any(x is not None and bool(x.any()) for x in (ours, theirs)))
    return float((ours - theirs).abs().max() / theirs.abs().max())


def policy_of(batch: Fields) -> Fields:
    """Return the tokens of a batch as `optimal_token` needs them."""
    mask = batch["mask"]
    owner = torch.arange(ROWS)[:, None].expand(mask.shape)[mask]
    return {"logp": batch["old_logp"][mask], "s2": squares_of(batch)[mask], "response": owner}


def squares_of(batch: Fields) -> Tensor:
    """Return Σπ² of a policy that has the probability of each token, (B, T): between π² and π² + (1 − π)²."""
    p = batch["old_logp"].exp()
    return p**2 + (1 - p) ** 2 * batch["s2"]


def greedy_of(batch: Fields) -> Fields:
    """Return the reward of a greedy response for each response, (B,)."""
    return {"greedy": batch["score"][::GROUP].repeat_interleave(GROUP)}


def source_of(batch: Fields) -> Fields:
    """Return one of two sources for each response, (B,), with no reward so far."""
    return {"source": torch.arange(ROWS) % 3 % 2, "baseline": torch.zeros(2)}


def terms_of(batch: Fields) -> Fields:
    """Return two rewards, (2, B), with their weights."""
    return {"rewards": torch.stack([batch["score"], batch["logp"][:, 0]]), "weight": torch.tensor([1.0, 0.25])}


def fields() -> Fields:
    """Return a padded batch: (B, T) each, `mask` true on tokens, `score` (B,) of 0 or 1. Ratios are from .4 to 6."""
    g = torch.Generator().manual_seed(7)
    shape = (ROWS, LENGTH)
    logp = -3 * torch.rand(*shape, generator=g, dtype=torch.float64) - 0.05
    drift, other, more = torch.randn(3, *shape, generator=g, dtype=torch.float64)
    score = torch.randint(0, 2, (ROWS,), generator=g).double()
    entropy, old_entropy = 2 * torch.rand(2, *shape, generator=g, dtype=torch.float64)
    length = torch.randint(2, LENGTH + 1, (ROWS, 1), generator=g)
    old = (logp + 0.5 * drift).clamp(max=-0.01)
    s2, mean = torch.rand(2, *shape, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    return {
        "logp": logp,
        "old_logp": old,
        "rollout_logp": old + 0.6 * other,
        "ref_logp": logp + 0.3 * more,
        "advantage": torch.randn(ROWS, 1, generator=g, dtype=torch.float64).expand(shape),
        "entropy": entropy,
        "old_entropy": old_entropy,
        "s2": s2,
        "s2l": -2 * mean * s2,
        "score": score,
        "reward": score[:, None].expand(shape),
        "mask": torch.arange(LENGTH) < length,
    }
