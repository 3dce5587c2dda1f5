"""Rollout engine of transformers: the policy itself, or a copy of it in another process."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..policy.logits import family
from ..policy.model import load
from ..settings.config import RolloutConfig
from .hf import HFRollout
from .rollout_engine import Pending, Request, RolloutEngine, RolloutError, Start, Weights
from .sampling_proof import is_exact, way_to_sample

SLOW = {
    "repeated": "its layers do not let the responses to a prompt share its keys and values",
    "apart": "its layers allow only prompts of one length at a time",
}
"""Reasons why a model is sampled in a slow way, for the user."""


class HFEngine(RolloutEngine):
    """Rollout engine that samples with the policy itself, so that no weights are sent."""

    version: int | None = 0
    continues = True
    starts = 0

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        config: RolloutConfig,
        *,
        rank: int = 0,
        whole: Callable[[], AbstractContextManager] = nullcontext,
    ) -> None:
        """whole: returns the context in which this rank holds all weights."""
        self.model, self.tokenizer, self.config = model, tokenizer, config
        self.rank, self.whole = rank, whole
        with self.whole():
            self.way = way_to_sample(model, tokenizer)
            told = config.old_logp == "rollout" or (config.old_logp == "auto" and is_exact(model, tokenizer, self.way))
        if rank == 0 and self.way in SLOW:
            print(f"rollout.name hf: {family(model)} is sampled slowly: {SLOW[self.way]}; try rollout.name vllm")
        self.tells_statistics = told and not config.partial_tokens
        """True if its statistics are those of the policy to train, for all tokens; ranks exchange responses later."""

    @classmethod
    def start(cls, start: Start) -> "HFEngine":
        """Return an engine around the trainer's own model, or around a copy of it in another process."""
        if start.model is None or start.tokenizer is None:
            return CopyEngine(start.folder, start.config, start.device, start.trust_remote_code)
        return HFEngine(start.model, start.tokenizer, start.config, rank=start.rank, whole=start.whole)

    def submit(self, request: Request) -> Pending:
        sampler = HFRollout(
            self.model,
            self.tokenizer,
            max_new_tokens=max(request.limits),
            temperature=request.sampling.temperature,
            top_p=request.sampling.top_p,
            generator=torch.Generator().manual_seed(request.seed),
            stop_token_ids=self.config.stop_token_ids,
            max_num_seqs=self.config.max_num_seqs,
            stats=self.tells_statistics and len(request.shares) == 1 and request.trained,
            way=self.way,
        )
        with self.whole():
            mine = request.shares[self.rank]
            rollouts = sampler.generate(request.prompt_ids, request.n, mine, draws(sampler, request))
        rollouts = replace(rollouts, version=torch.tensor(self.version or 0))
        return lambda: rollouts

    def update(self, weights: Weights, version: int) -> None:
        self.version = version


def draws(sampler: HFRollout, request: Request) -> list[Tensor]:
    """Return the uniforms of each prompt's responses: those that a response would get if it were never interrupted."""
    shape = (request.new, request.n, request.sampling.max_new_tokens)
    found = list(sampler.uniforms(shape)[..., : request.limits[0]])
    drawn: dict[int, Tensor] = {}
    for begun, limit in zip(request.begun, request.limits[request.new :], strict=True):
        if begun.seed not in drawn:
            drawn = {begun.seed: sampler.uniforms(shape, begun.seed)}
        found.append(drawn[begun.seed][begun.prompt, begun.sample, None, begun.tokens : begun.tokens + limit].clone())
    return found


class CopyEngine(HFEngine):
    """Copy of the policy that samples with transformers; updates overwrite its weights."""

    starts = 1

    def __init__(
        self, folder: str | Path, config: RolloutConfig, device: str = "cpu", trust_remote_code: bool = False
    ) -> None:
        model, tokenizer = load(folder, device=device, trust_remote_code=trust_remote_code)
        super().__init__(model, tokenizer, config)
        self.tells_statistics = False  # its weights may be older
        torch.nn.Module.to(self.model, torch.device(device))

    def update(self, weights: Weights, version: int) -> None:
        """Copy the weights into the model. Raises RolloutError if names or shapes differ from the model's."""
        mine = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, weight in weights:
                if name not in mine or mine[name].shape != weight.shape:
                    raise RolloutError(f"there is no weight {name} of shape {tuple(weight.shape)} in the engine")
                mine.pop(name).copy_(weight)
        if mine:
            raise RolloutError(f"weights were not sent, such as {min(mine)}")
        self.version = version
