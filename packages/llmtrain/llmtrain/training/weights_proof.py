"""Proof of sent weights: an engine's log-probabilities of a few tokens that it sampled are those of the trainer.

Names, checksums and versions can all be right while an engine computes with other weights: it may keep a packed copy,
or read a name otherwise.
"""

import sys
from dataclasses import replace

import torch

from entrostat.numbers.draws import generator_seed

from ..data.prompts import encode_all
from ..policy.policy import Policy
from ..process.ranks import Ranks
from ..rollout.rollout_engine import RolloutEngine, RolloutError, Sampler
from ..sequences.batch import Batch
from ..settings.config import TrainConfig
from .batches import Batches

FULL, HALF = 0.05, 0.2
"""Limits of the mean gap in nats, in fp32 and in bf16. Rounding makes 1e-5 and .01 to .05; other weights .5 or more."""
TOKENS, PROMPTS = 16, 2
"""Upper limit for the tokens of a response, and prompts per engine."""


def rounding_limit(config: TrainConfig) -> float:
    """Return the largest mean gap (nats) that rounding explains."""
    precise = config.device == "cpu" or config.rollout.name == "hf"
    engine = {"auto": "float32" if precise else "bfloat16"}.get(config.rollout.dtype, config.rollout.dtype)
    return HALF if config.engine.bf16 or engine == "bfloat16" else FULL


def mismatch_limit(config: TrainConfig) -> float:
    """Return the upper limit for the mean gap in a run; 0: none."""
    if config.guard.mismatch_above is not None:
        return config.guard.mismatch_above
    return 0.0 if config.topology.staleness or config.rollout.partial_tokens else rounding_limit(config)


class WeightsProof:
    """Watch over the engines of a run: each proves the first weights that it is sent after a start."""

    def __init__(self, batches: Batches, policy: Policy, engine: RolloutEngine, ranks: Ranks) -> None:
        self.batches, self.policy, self.engine, self.ranks = batches, policy, engine, ranks
        self.config = batches.config
        self.proved = 0
        """Number of engine starts whose weights were proved."""

    def after_update(self) -> None:
        """Ask the engines for a few tokens if one of them has taken weights for the first time; all ranks call this.

        Raises RolloutError if the mean gap of a response is above `rounding_limit`; with `guard.mismatch warn` it is
        printed, and with a `guard.mismatch_above` of 0 nothing is asked.
        """
        started = self.ranks.most(self.engine.starts)
        if started == self.proved or self.config.guard.mismatch_above == 0:
            return
        self.proved = started
        told = self._gap(PROMPTS * max(started, self.ranks.size))
        if told and self.config.guard.mismatch != "warn":
            raise RolloutError(told)
        if told and self.ranks.rank == 0:
            print(f"guard: {told}", file=sys.stderr)

    def _gap(self, prompts: int) -> str:
        """Return what is wrong with the responses to this many prompts; empty if nothing is."""
        config, seed = self.config, generator_seed("proof", self.config.seed, self.engine.version or 0)
        questions = self.batches.task.train_batch(0, prompts, config.seed)
        ids = encode_all(self.batches.tokenizer, [question.prompt for question in questions])
        sampling = replace(
            config.rollout.sampling,
            samples=1,
            max_new_tokens=min(TOKENS, config.rollout.max_new_tokens),
            temperature=self.policy.temperature,
        )
        rollouts = Sampler(self.engine, self.batches.tokenizer, seed, self.ranks.size).generate(ids, sampling)
        batch, lengths = Batch.of(rollouts), rollouts.response_lengths
        own = self.policy.all_stats(batch, config.optim.micro_batch_tokens, self.ranks).logp.cpu()
        owner = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        gap = (own - rollouts.logp).abs().nan_to_num(torch.inf)
        both = torch.stack([own, rollouts.logp, gap]).double()
        means = torch.zeros(3, len(lengths), dtype=torch.float64).index_add_(1, owner, both) / lengths
        worst = max(self.ranks.gather(means.T.tolist()), key=lambda row: row[2])
        limit = rounding_limit(config)
        if worst[2] <= limit:
            return ""
        return (
            f"rollout engine {config.rollout.name} does not compute with the weights {self.engine.version} it was "
            f"sent: of tokens that it sampled its mean log-probability is {worst[1]:.2f}, "
            f"the trainer's {worst[0]:.2f}; they differ by {worst[2]:.2g} nats a token, "
            f"where rounding explains {limit:g}"
        )
