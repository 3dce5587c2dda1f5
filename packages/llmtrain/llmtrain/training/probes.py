"""Probes: fixed questions, answered every few steps with fixed random numbers, and logged token by token.

    questions ► sample ─► [engine releases the GPU] ─► verifier ► group advantages ► statistics ► plan of a copy ► lines

Prompts, seed and number of samples do not depend on the run's seed or step, so that two answers part where the policies
first draw different tokens. Nothing that training uses changes: torch's random numbers are set back, the plan is that
of a copy of the controller, and the answers are not trained on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch

from entrostat import Chain
from entrostat.numbers.draws import generator_seed

from ..data.prompts import encode_all
from ..rollout.rollout_engine import Request, RolloutEngine, check_answer
from ..sequences.rollouts import Rollouts
from ..sequences.samples import pieces, token_columns
from ..settings.config import TrainConfig
from ..tasks import Task
from .annotator import Annotator
from .collect import Collector

SEED = generator_seed("probes")


class Prober:
    """Probes of a run."""

    def __init__(
        self, config: TrainConfig, task: Task, collector: Collector, annotator: Annotator, controller: Chain
    ) -> None:
        self.config, self.collector, self.annotator, self.controller = config, collector, annotator, controller
        self.ranks, self.clock, self.tokenizer = collector.ranks, collector.clock, collector.tokenizer
        self.questions = list(task.test[: config.log.probes])

    def is_due(self, step: int) -> bool:
        """Return True if the probes are answered at this rollout step."""
        return bool(self.questions) and step % self.config.log.probe_every == 0

    def sample(self, engine: RolloutEngine) -> Rollouts:
        """Return this rank's answers by the current policy, to whole groups. Raises RolloutError."""
        with self._aside():
            prompt_ids = encode_all(self.tokenizer, [question.prompt for question in self.questions])
            samples, heat = self.config.log.probe_samples, self.collector.batches.temperature
            sampling = replace(self.config.rollout.sampling, samples=samples, temperature=heat)
            shares = [list(range(rank, len(prompt_ids), self.ranks.size)) for rank in range(self.ranks.size)]
            request = Request(prompt_ids, sampling, shares, SEED, trained=not self.config.rollout.train_at_one)
            rollouts = engine.submit(request)()
            check_answer(rollouts, request, engine.version or 0, self.ranks.rank)
            return rollouts

    def answers(self, rollouts: Rollouts, step: int) -> list[dict[str, Any]]:
        """Return the answers of all ranks as JSON values, by probe and sample; see `entrostat.logs.probe_log`.

        Rewards and group advantages are computed as in training. The weight is the controller's in a plan whose
        mini-batch is the probes: a controller that compares tokens compares them with those of the other probes.
        """
        with self._aside():
            n = self.config.log.probe_samples
            found = self.collector.probed(self.questions, rollouts, n)
            experience, _ = self.annotator.experience(found)
            tokens = experience.tokens(None)
            number = step * self.config.updates
            plan = deepcopy(self.controller).plan(tokens, self.ranks.reduce, seed=self.config.seed, step=number)
            columns = token_columns(
                tokens, plan, torch.arange(len(rollouts.response_ids), device=tokens.advantage.device)
            )
            ends = rollouts.response_lengths.cumsum(0).tolist()
            texts = rollouts.texts(self.tokenizer)
            lines = [
                {
                    "probe": sequence // n,
                    "sample": sequence % n,
                    "prompt": self.tokenizer.decode(rollouts.prompt_ids[sequence // n]),
                    "response": texts[i],
                    "reward": float(found.reward[i]),
                    "tokens": pieces(self.tokenizer, ids),
                    **{name: values[ends[i] - len(ids) : ends[i]] for name, values in columns.items()},
                }
                for i, (sequence, ids) in enumerate(zip(found.sequence.tolist(), rollouts.responses(), strict=True))
            ]
            return sorted(self.ranks.gather(lines), key=lambda line: (line["probe"], line["sample"]))

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Run a block without a trace in the training: its own random numbers, its own phase of the clock."""
        devices = [torch.cuda.current_device()] if self.config.device == "cuda" else []
        with self.clock.whole_phase("probes"), torch.random.fork_rng(devices):
            torch.manual_seed(SEED)
            yield
