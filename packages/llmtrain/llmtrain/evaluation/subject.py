"""The model under evaluation: draws responses, as it is told to; as a policy it is at temperature 1.

So its log-probabilities and entropies can be compared across settings, and with what it was before training.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from entrostat.installation import remedy

from ..policy.model import load
from ..policy.policy import Policy
from ..process.devices import check_device
from ..process.gpu_memory import empty_cache
from ..rollout import HFRollout, stop_ids
from ..rollout.rollout_engine import Request
from ..sequences.rollouts import Rollouts
from .sampling import Sampling

if TYPE_CHECKING:
    from ..rollout.vllm.vllm_engine import VLLMEngine

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Subject:
    """A model and how it is asked."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    stop_token_ids: tuple[int, ...] = ()
    vllm: "VLLMEngine | None" = None
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

    def with_vllm(self, path: str | Path, longest: int) -> "Subject":
        """The same, sampled by a vLLM engine of its own for prompts and responses of at most `longest` tokens together.

        Raises:
            ValueError: when vLLM is not installed, cannot run this model, or does not start.
        """
        from ..rollout.rollout_engine import RolloutError
        from ..settings.config import RolloutConfig

        try:
            from ..rollout.vllm.vllm_engine import VLLMEngine

            stops = stop_ids(self.model, self.tokenizer, self.stop_token_ids)
            config = RolloutConfig(name="vllm", max_model_len=longest)
            engine = VLLMEngine(path, config, stops, device=self.model.device.type, sleep_level=1)
        except RolloutError as error:
            raise ValueError(
                f"{error}; without --rollout vllm the model samples for itself ({remedy('vllm')})"
            ) from None
        return replace(self, vllm=engine)

    def close(self) -> None:
        """End the vLLM engine, if there is one."""
        if self.vllm is not None:
            self.vllm.close()

    def sample(
        self,
        prompt_ids: Sequence[list[int]],
        sampling: Sampling,
        seed: int,
        mine: Sequence[int] | None = None,
    ) -> Rollouts:
        """`sampling.samples` responses to the prompts `mine`, all when None; see `HFRollout.generate`."""
        if self.vllm is not None:
            chosen = list(range(len(prompt_ids)) if mine is None else mine)
            temperature, limit = sampling.temperature, sampling.max_new_tokens
            self.vllm.config = replace(self.vllm.config, temperature=temperature, max_new_tokens=limit)
            self.vllm.top_p = sampling.top_p
            empty_cache()
            rollouts = self.vllm.submit(Request(list(prompt_ids), sampling.samples, [chosen], seed))()
            self.vllm.release()
            return rollouts
        rollout = HFRollout(
            self.model,
            self.tokenizer,
            max_new_tokens=sampling.max_new_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            generator=torch.Generator().manual_seed(seed),
            stop_token_ids=self.stop_token_ids,
        )
        return rollout.generate(prompt_ids, sampling.samples, mine)
