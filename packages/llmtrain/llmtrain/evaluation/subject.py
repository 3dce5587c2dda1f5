"""Model under evaluation: it samples responses with given settings; its statistics are at temperature 1.

So log-probabilities and entropies can be compared across settings and with the model before training.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..policy.model import load
from ..policy.policy import Policy
from ..process.devices import check_device
from ..process.gpu_memory import empty_cache
from ..rollout.engine_names import engine_class, start_engine
from ..rollout.hf import stop_ids
from ..rollout.hf_engine import HFEngine
from ..rollout.rollout_engine import Request, RolloutEngine, RolloutError, Start
from ..sequences.rollouts import Rollouts
from ..settings.config import ModelConfig, RolloutConfig, TrainConfig
from ..settings.sampling import Sampling

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Subject:
    """Model with its tokenizer, stop tokens and rollout engine."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    stop_token_ids: tuple[int, ...] = ()
    rollout: str = "hf"
    """Name of the rollout engine."""
    engine: RolloutEngine | None = None
    """Engine that samples instead of the model; statistics still come from the model."""
    trust_remote_code: bool = False
    """Run the Python code of a model folder that brings its own classes."""

    @cached_property
    def policy(self) -> Policy:
        """Policy at temperature 1, for log-probabilities and entropies."""
        return Policy(self.model)

    @staticmethod
    def load(
        path: str | Path,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        trust_remote_code: bool = False,
        stop_token_ids: tuple[int, ...] = (),
    ) -> "Subject":
        """Load a model folder. Raises ValueError if it or the device is missing."""
        check_device(device)
        model, tokenizer = load(path, dtype=DTYPES[dtype], device=device, trust_remote_code=trust_remote_code)
        model = model.eval().to(torch.device(device))
        return Subject(model, tokenizer, stop_token_ids, trust_remote_code=trust_remote_code)

    def sampled_by(self, name: str, path: str | Path, longest: int) -> "Subject":
        """Start another rollout engine, and return the subject that samples with it.

        path: model folder. longest: upper limit for the tokens of a prompt and its response together.
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
            trust_remote_code=self.trust_remote_code,
        )
        device: Literal["cpu", "cuda"] = "cuda" if start.device == "cuda" else "cpu"
        engine_class(name).check(TrainConfig(rollout=config, device=device, model=ModelConfig(path=str(path))))
        try:
            return replace(self, rollout=name, engine=start_engine(start))
        except RolloutError as error:
            raise ValueError(f"{error}; without --rollout {name} the model samples for itself") from None

    def close(self) -> None:
        """Close the rollout engine, if there is one."""
        if self.engine is not None:
            self.engine.close()

    def sample(
        self,
        prompt_ids: Sequence[list[int]],
        sampling: Sampling,
        seed: int,
        mine: Sequence[int] | None = None,
    ) -> Rollouts:
        """Return `sampling.samples` responses to each of the prompts `mine`, or to all prompts if None."""
        own = RolloutConfig(stop_token_ids=self.stop_token_ids, old_logp="trainer")
        engine = self.engine or HFEngine(self.model, self.tokenizer, own)
        chosen = list(range(len(prompt_ids)) if mine is None else mine)
        empty_cache()
        rollouts = engine.submit(Request(list(prompt_ids), sampling, [chosen], seed))()
        engine.release()
        return rollouts
