"""The model under evaluation: draws responses, and tells their log-probabilities and entropies.

Statistics are the model's own, at temperature 1 and over the whole vocabulary, however the responses were drawn: so
they can be compared across settings, and with what the model was before training.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..batch import Batch
from ..model import load
from ..policy import Policy
from ..rollout import HFRollout, Rollouts, eos_token_ids
from ..rollout.engine import Request
from .settings import Sampling

if TYPE_CHECKING:
    from ..rollout.vllm_engine import VLLMEngine

MICRO_BATCH_TOKENS = 16384
"""Tokens that pass through the model together when statistics are made."""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Means(NamedTuple):
    """Means over the tokens of each sequence, (B,), in nats; NaN for a sequence without tokens."""

    logp: NDArray[np.float64]
    entropy: NDArray[np.float64]


@dataclass(frozen=True)
class Subject:
    """A model and how it is asked."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    stop_token_ids: tuple[int, ...] = ()
    max_num_seqs: int = 0
    """Sequences that are sampled together; 0 samples all at once."""
    vllm: "VLLMEngine | None" = None
    """Samples in place of the model; statistics are the model's all the same."""

    @staticmethod
    def load(path: str | Path, *, device: str = "cpu", dtype: str = "float32", **settings: object) -> "Subject":
        """From a model folder. ValueError when there is none, or for a device that is not here."""
        if device not in ("cpu", "cuda"):
            raise ValueError(f"unknown device {device!r}; choose from cpu, cuda")
        if device == "cuda" and not torch.cuda.is_available():
            raise ValueError("device cuda is not available here; use --device cpu")
        model, tokenizer = load(path, dtype=DTYPES[dtype])
        return Subject(model.eval().to(torch.device(device)), tokenizer, **settings)  # type: ignore[arg-type]

    def with_vllm(self, path: str | Path, longest: int) -> "Subject":
        """The same, sampled by a vLLM engine of its own for prompts and responses of at most `longest` tokens together.

        Raises:
            ValueError: when vLLM is not installed, cannot run this model, or does not start.
        """
        from ..config import RolloutConfig
        from ..rollout.engine import RolloutError
        from ..rollout.vllm_start import INSTALL

        try:
            from ..rollout.vllm_engine import VLLMEngine

            stops = [*eos_token_ids(self.model, self.tokenizer), *self.stop_token_ids]
            config = RolloutConfig(name="vllm", max_model_len=longest)
            engine = VLLMEngine(path, config, stops, device=self.model.device.type, sleeps=True)
        except RolloutError as error:
            raise ValueError(f"{error}; without --rollout vllm the model samples for itself ({INSTALL})") from None
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
            return self.vllm.submit(Request(list(prompt_ids), sampling.samples, [chosen], seed))()
        rollout = HFRollout(
            self.model,
            self.tokenizer,
            max_new_tokens=sampling.max_new_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            generator=torch.Generator().manual_seed(seed),
            stop_token_ids=self.stop_token_ids,
            max_num_seqs=self.max_num_seqs,
        )
        return rollout.generate(prompt_ids, sampling.samples, mine)

    def response_means(self, rollouts: Rollouts) -> Means:
        """Over the tokens of each response."""
        return self._means(Batch.of(rollouts))

    def prompt_entropy(self, prompt_ids: Sequence[list[int]]) -> NDArray[np.float64]:
        """Mean entropy over the tokens of each prompt but the first, which nothing predicts (Q,), in nats.

        NaN for a prompt of one token (Revisiting Entropy, C.2).
        """
        longer = [i for i, ids in enumerate(prompt_ids) if len(ids) > 1]
        found = np.full(len(prompt_ids), np.nan)
        if longer:
            lengths = torch.tensor([len(prompt_ids[i]) for i in longer])
            ids = torch.tensor([token for i in longer for token in prompt_ids[i]])
            found[longer] = self._means(Batch(ids, torch.ones_like(lengths), lengths - 1)).entropy
        return found

    def _means(self, batch: Batch) -> Means:
        if not len(batch):
            return Means(np.empty(0), np.empty(0))
        stats = Policy(self.model).all_stats(batch, MICRO_BATCH_TOKENS)
        lengths = batch.response_lengths

        def mean(x: Tensor) -> NDArray[np.float64]:
            owner = torch.arange(len(lengths)).repeat_interleave(lengths)
            return (torch.zeros(len(lengths)).double().index_add(0, owner, x.double().cpu()) / lengths).numpy()

        return Means(mean(stats.logp), mean(stats.entropy))
