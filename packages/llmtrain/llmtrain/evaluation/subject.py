"""The model under evaluation: draws responses, as it is told to; as a policy it is at temperature 1.

So its log-probabilities and entropies can be compared across settings, and with what it was before training.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..policy.model import load
from ..policy.policy import Policy
from ..process.devices import check_device
from ..process.gpu_memory import empty_cache
from ..rollout import stop_ids
from ..rollout.hf_engine import HFEngine
from ..rollout.make import engine_class, start_engine
from ..rollout.rollout_engine import Request, RolloutEngine, RolloutError, Start
from ..sequences.rollouts import Rollouts
from ..settings.config import ModelConfig, RolloutConfig, TrainConfig
from ..settings.sampling import Sampling

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Subject:
    """A model and how it is asked."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    stop_token_ids: tuple[int, ...] = ()
    rollout: str = "hf"
    """Name of the rollout engine."""
    engine: RolloutEngine | None = None
    """Samples in place of the model; statistics are the model's all the same."""

    @cached_property
    def policy(self) -> Policy:
        """The model as what tells log-probabilities and entropies, at temperature 1."""
        return Policy(self.model)

    @staticmethod
    def load(path: str | Path, *, device: str = "cpu", dtype: str = "float32", **settings: object) -> "Subject":
        """From a model folder. ValueError when there is none, or for a device that is not here."""
        check_device(device)
        model, tokenizer = load(path, dtype=DTYPES[dtype], device=device)
        return Subject(model.eval().to(torch.device(device)), tokenizer, **settings)  # type: ignore[arg-type]

    def sampled_by(self, name: str, path: str | Path, longest: int) -> "Subject":
        """Return the subject, sampled by another rollout engine that has started.

        path: folder of the model. longest: most tokens of a prompt and its response together.
        Raises ValueError if the engine is not installed, cannot run this model, or does not start.
        """
        config = RolloutConfig(name=name, max_model_len=longest, stop_token_ids=self.stop_token_ids)
        start = Start(
            folder=Path(path),
            config=config,
            stop_token_ids=stop_ids(self.model, self.tokenizer, self.stop_token_ids),
            device=self.model.device.type,
            model=self.model,
            tokenizer=self.tokenizer,
            sleep_level=1,
        )
        engine_class(name).check(TrainConfig(rollout=config, device=start.device, model=ModelConfig(path=str(path))))
        try:
            return replace(self, rollout=name, engine=start_engine(start))
        except RolloutError as error:
            raise ValueError(f"{error}; without --rollout {name} the model samples for itself") from None

    def close(self) -> None:
        """End the rollout engine, if there is one."""
        if self.engine is not None:
            self.engine.close()

    def sample(
        self,
        prompt_ids: Sequence[list[int]],
        sampling: Sampling,
        seed: int,
        mine: Sequence[int] | None = None,
    ) -> Rollouts:
        """Return `sampling.samples` responses to the prompts `mine`, to all of them if None."""
        own = RolloutConfig(stop_token_ids=self.stop_token_ids)
        engine = self.engine or HFEngine(self.model, self.tokenizer, own)
        chosen = list(range(len(prompt_ids)) if mine is None else mine)
        empty_cache()
        rollouts = engine.submit(Request(list(prompt_ids), sampling, [chosen], seed))()
        engine.release()
        return rollouts
