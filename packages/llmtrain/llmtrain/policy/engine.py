"""Engines, which turn losses into optimizer steps, and the torch engine: one process, AdamW, gradient clipping."""

import contextlib
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel

from ..process.ranks import Ranks
from ..settings.config import OptimConfig
from .rates import rate_of


class NonFiniteError(ArithmeticError):
    """Error on a NaN or infinite loss or gradient; the weights are unchanged by the update."""


def always(norm: float) -> bool:
    """Return True: any finite gradient makes a step."""
    return True


class Engine(Protocol):
    """Interface of an engine for learner and trainer. All ranks make the same calls in the same order."""

    @property
    def ranks(self) -> Ranks:
        """Processes that train together."""

    allows: Callable[[float], bool]
    """Function of the gradient norm that returns False if the step must not be taken."""

    @property
    def lr(self) -> float:
        """Learning rate of the next step."""

    def begin(self, slices: int) -> int:
        """Announce the passes of the next step; return the number that every rank must make."""

    def backward(self, loss: Tensor) -> None:
        """Accumulate gradients: they add up over passes and ranks."""

    def step(self) -> float:
        """Take one optimizer step; return the norm of the whole gradient before clipping.

        Raises NonFiniteError on every rank if a loss or the norm is not finite; the weights are then unchanged.
        """

    def discard(self) -> None:
        """Forget the gradients of this step."""

    def forget(self) -> None:
        """Begin AdamW's moments and their count of steps anew; the learning rate goes on."""

    def whole(self, parameters: Iterable[nn.Parameter] | None = None) -> contextlib.AbstractContextManager:
        """Gather weights on every rank inside the context: all of them, to sample, or `parameters`, to read."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...

    def save_shards(self, folder: Path) -> None:
        """Write the state that only this rank holds into a folder shared by all ranks."""

    def load_shards(self, folder: Path) -> None:
        """Load the state that `save_shards` wrote."""


def adamw(
    parameters: Iterable[nn.Parameter], config: OptimConfig, updates: int = 0
) -> tuple[torch.optim.AdamW, LambdaLR]:
    """Return the optimizer and its learning-rate schedule, the same in all engines.

    One kernel updates each tensor in place. torch's defaults take a pass per operation on a CPU, four times as long,
    and on CUDA hold copies of all tensors during a step. updates: optimizer steps of the run, see `rate_of`.
    """
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    decay = config.weight_decay
    optimizer = torch.optim.AdamW(trained, lr=config.lr, betas=config.betas, weight_decay=decay, fused=True)
    return optimizer, LambdaLR(optimizer, rate_of(config, updates))


def set_rates(optimizer: torch.optim.Optimizer, scheduler: LambdaLR, config: OptimConfig) -> None:
    """Apply the configuration's settings to an optimizer after loading its state, because they may have changed."""
    scheduler.base_lrs = [config.lr] * len(scheduler.base_lrs)
    for group, rate in zip(optimizer.param_groups, scheduler.lr_lambdas, strict=True):
        now = {"lr": config.lr * rate(scheduler.last_epoch), "initial_lr": config.lr}
        group |= now | {"betas": config.betas, "weight_decay": config.weight_decay}


@torch.no_grad()
def forget(optimizer: torch.optim.Optimizer) -> None:
    """Set AdamW's moments and their count of steps to 0 in place, as before its first step."""
    for state in optimizer.state.values():
        for numbers in state.values():
            numbers.zero_()


def clip(parameters: Iterable[nn.Parameter], most: float) -> float:
    """Scale gradients down to at most the norm `most`, 0 for no limit; return their norm before."""
    return torch.nn.utils.clip_grad_norm_(parameters, most or math.inf).item()


class TorchEngine:
    """Engine of a single process. Gradients add up over `backward` calls until `step`."""

    def __init__(self, model: PreTrainedModel, config: OptimConfig, updates: int = 0) -> None:
        self.model = model
        self.config = config
        self.ranks = Ranks()
        self.allows: Callable[[float], bool] = always
        self.optimizer, self.scheduler = adamw(model.parameters(), config, updates)
        self.loss = torch.zeros(())
        """Sum of the losses of this step, on their device: to look at each, the host would wait for it."""

    @property
    def lr(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def begin(self, slices: int) -> int:
        self.loss = torch.zeros((), dtype=torch.float64, device=self.model.device)
        return slices

    def backward(self, loss: Tensor) -> None:
        self.loss = self.loss + loss.detach()
        loss.backward()

    def step(self) -> float:
        loss, norm = float(self.loss), clip(self.model.parameters(), self.config.max_grad_norm)
        if not math.isfinite(loss):
            raise NonFiniteError(f"loss is {loss}")
        if not math.isfinite(norm):
            raise NonFiniteError(f"gradient norm is {norm}")
        if self.allows(norm):
            self.optimizer.step()
            self.scheduler.step()
        self.discard()
        return norm

    def discard(self) -> None:
        self.optimizer.zero_grad()
        self.loss = torch.zeros_like(self.loss)

    def forget(self) -> None:
        forget(self.optimizer)

    def whole(self, parameters: Iterable[nn.Parameter] | None = None) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext()

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer.state_dict(), "scheduler": self.scheduler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if "optimizer" not in state:
            raise ValueError("the checkpoint has engine.name deepspeed, this run has torch: use the same")
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        set_rates(self.optimizer, self.scheduler, self.config)

    def save_shards(self, folder: Path) -> None:
        """No-op: `state_dict` contains the whole state."""

    def load_shards(self, folder: Path) -> None:
        """No-op: `state_dict` contains the whole state."""
