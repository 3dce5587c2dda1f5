"""A rollout engine besides the policy that needs no vLLM."""

from pathlib import Path

import torch

from ...policy.model import load
from ...settings.config import RolloutConfig
from ..rollout_engine import HFEngine, RolloutError, Weights


class CopyEngine(HFEngine):
    """A copy of the policy, which samples with transformers; weights are written into it."""

    def __init__(self, folder: str | Path, config: RolloutConfig, device: str = "cpu") -> None:
        model, tokenizer = load(folder, device=device)
        super().__init__(model, tokenizer, config)
        torch.nn.Module.to(self.model, torch.device(device))

    def update(self, weights: Weights, version: int) -> None:
        """Raises RolloutError when they are not the weights of this model."""
        mine = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, weight in weights:
                if name not in mine or mine[name].shape != weight.shape:
                    raise RolloutError(f"there is no weight {name} of shape {tuple(weight.shape)} in the engine")
                mine.pop(name).copy_(weight)
        if mine:
            raise RolloutError(f"weights were not sent, {min(mine)} among them")
        self.version = version
