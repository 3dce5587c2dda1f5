"""The torch engine: one process, AdamW, gradient clipping."""

import math
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from .config import OptimConfig


class NonFiniteError(ArithmeticError):
    """A loss or a gradient is NaN or infinite: the weights are those of before the update."""


class TorchEngine:
    """Gradients add up over `backward` calls until `step`."""

    def __init__(self, model: PreTrainedModel, config: OptimConfig) -> None:
        self.model = model
        self.config = config
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=config.lr, betas=config.betas, weight_decay=config.weight_decay
        )
        ramp = max(config.warmup_steps, 1)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda i: min((i + 1) / ramp, 1.0))

    def backward(self, loss: Tensor) -> None:
        """Accumulate gradients. Raises NonFiniteError when the loss is NaN or infinite."""
        if not math.isfinite(loss.item()):
            raise NonFiniteError(f"loss is {loss.item()}")
        loss.backward()

    def step(self) -> float:
        """One optimizer step; returns the gradient's norm before clipping.

        Raises NonFiniteError when the norm is not finite, and leaves the weights as they were.
        """
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm).item()
        if not math.isfinite(norm):
            raise NonFiniteError(f"gradient norm is {norm}")
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()
        return norm

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer.state_dict(), "scheduler": self.scheduler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
