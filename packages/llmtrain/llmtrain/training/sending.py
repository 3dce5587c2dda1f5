"""Weights on their way from the policy to the engine that samples, and the engine's memory."""

from collections.abc import Iterator

import torch
from transformers import PreTrainedModel

from ..policy.engine import Engine
from ..policy.lora import adapter_weights, whole_weights
from ..policy.published import published
from ..process.clock import Clock
from ..rollout.rollout_engine import Rereadable, RolloutEngine
from ..settings.config import TrainConfig
from .weights_proof import WeightsProof


class Sending:
    """Sender of a run's weights. An engine that has taken them proves it."""

    def __init__(
        self,
        config: TrainConfig,
        model: PreTrainedModel,
        engine: Engine,
        rollout: RolloutEngine,
        proof: WeightsProof,
        clock: Clock,
    ) -> None:
        self.config, self.model, self.engine = config, model, engine
        self.rollout, self.proof, self.clock = rollout, proof, clock

    def send(self, step: int) -> None:
        """Send the weights of this step unless the engine has them."""
        if self.rollout.version == step:
            return
        with self.clock.phase("sync"):
            self.rollout.update(Rereadable(self._weights), step)
            self.proof.after_update()

    def _weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the weights as the engine takes them."""
        if self.config.adapter_rank:
            return adapter_weights(self.model, self.engine.whole)
        whole = whole_weights(self.model, self.engine.whole)
        return published(self.model, whole) if self.rollout.published else whole

    def release(self) -> None:
        """Release the engine's GPU memory."""
        with self.clock.phase("sync"):
            self.rollout.release()
