"""Probed training: entropies of a mini-batch before and after one update, at chosen rollout steps.

    probes = Walk(config, model_path, steps=(0, 5, 10), sgd=True).walk()

statistics ─► the run's own step ─► statistics ─► [undo ─► a step of gradient descent ─► statistics ─► redo]
                                                  [undo ─► one token's part of that step ─► statistics ─► redo]*

The run continues bit for bit as without probes: only the first update of a rollout step is probed, statistics use no
random numbers, and the weights after the run's own step are restored.
"""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from entrostat import Plan
from entrostat.numbers.draws import generator_seed

from ..kernels import HeadStats
from ..policy.engine import TorchEngine
from ..process.ranks import Ranks
from ..sequences.batch import Batch
from ..settings.config import TrainConfig
from ..training.experience import Experience
from ..training.guard import RollBackError
from ..training.learner import Learner, Watch, look_away
from ..training.trainer import Report, Trainer, TrainingStoppedError
from .first_order import first_order, influence
from .probe import ALL, ESTIMATORS, OWN, Probe, probe


class GradientDescent(TorchEngine):
    """Plain gradient descent. The first step has the given length in weight space and sets the learning rate."""

    def __init__(self, model: PreTrainedModel, length: float) -> None:
        self.model, self.length, self.ranks = model, length, Ranks()
        self.rate = math.nan

    @property
    def lr(self) -> float:
        """Learning rate; NaN before the first step."""
        return self.rate

    @torch.no_grad()
    def step(self) -> float:
        """Take a step, and return the norm of the gradient."""
        trained = [(p, p.grad) for p in self.model.parameters() if p.grad is not None]
        norm = float(nn.utils.get_total_norm([grad for _, grad in trained]))
        if math.isnan(self.rate):
            self.rate = self.length / norm if norm > 0 else 0.0
        for p, grad in trained:
            p.sub_(self.rate * grad)
            p.grad = None
        return norm


@dataclass
class Watched:
    """Updates to probe, and the probes taken."""

    steps: frozenset[int]
    """Rollout steps whose first update is probed."""
    sgd: bool = False
    """Also probe a step of plain gradient descent with the length of the run's own step."""
    alone: int = 0
    """Number of updated tokens whose own part of that step is also probed, one token at a time: its effect on the
    token's entropy, and on the entropy of all tokens together."""
    first_order: bool = False
    """Also estimate the changes to first order in the weights."""
    probes: list[Probe] = field(default_factory=list)


class ProbedLearner(Learner):
    """Learner that probes the first update of the watched rollout steps."""

    def __init__(self, learner: Learner, watched: Watched) -> None:
        vars(self).update(vars(learner))
        self.watched = watched
        self.due: int | None = None
        """Rollout step whose first update will be probed, or None."""

    def update(self, experience: Experience, step: int, watch: Watch = look_away) -> dict[str, float]:
        self.due = step if step in self.watched.steps else None
        return super().update(experience, step, watch)

    def optimize(self, mini: Experience, plan: Plan, watch: Watch = look_away) -> dict[str, float]:
        if self.due is None or not bool(plan.active().any()):
            return super().optimize(mini, plan, watch)
        step, self.due = self.due, None
        tokens, start = mini.tokens(self._stats(mini.batch)), self._weights()
        assert isinstance(self.engine, TorchEngine)
        lr = self.engine.lr
        metrics = super().optimize(mini, plan, watch)
        end = self._weights()
        length = float(torch.stack([(b - a).norm() for a, b in zip(start, end, strict=True)]).norm())

        def seen(optimizer: str, lr: float) -> Probe:
            told = {"step": step, "optimizer": optimizer, "lr": lr, "length": length}
            after, more = self._stats(mini.batch).entropy, {}
            if self.watched.first_order:
                budget = self.config.micro_batch_tokens
                more = first_order(self.policy, mini.batch, start, self._weights(), budget)
            self.watched.probes.append(probe(tokens, plan, after, more, **told))
            return self.watched.probes[-1]

        seen("AdamW", lr)
        if self.watched.sgd or self.watched.alone:
            self._put(start)
            descent = GradientDescent(self.policy.model, length)
            own, self.engine = self.engine, descent
            super().optimize(mini, plan)
            found = seen("SGD", descent.lr)
            if self.watched.alone:
                self.watched.probes += self._alone(found, mini.batch, plan, descent, start)
            self.engine = own
            self._put(end)
        return metrics

    def _alone(
        self, found: Probe, batch: Batch, plan: Plan, descent: GradientDescent, start: list[Tensor]
    ) -> list[Probe]:
        """Return two probes of some updated tokens, each updated alone by its own part of the step.

        The first is of the token's own entropy, the second of the entropy of all tokens together.
        """
        generator = torch.Generator().manual_seed(generator_seed("probe", self.seed, found.step))
        updated = torch.from_numpy(found.updated).nonzero()[:, 0]
        chosen = updated[torch.randperm(len(updated), generator=generator)[: self.watched.alone]].sort().values
        owner = torch.repeat_interleave(torch.arange(len(batch)), batch.response_lengths)
        self._put(start)
        before = self._stats(batch).entropy.double()
        estimates = {name: found.estimates[name] for name in ESTIMATORS}  # others describe the whole step
        shared = {}
        if self.watched.first_order:
            part = torch.from_numpy(found.weight).to(before) / plan.size * descent.lr
            told = influence(self.policy, batch, part, self.config.micro_batch_tokens)
            shared = {name: x.cpu().double().numpy() for name, x in told.items()}
        own, total, lengths = [], [], []
        for token in chosen:
            sequence = owner[token : token + 1]
            index = batch.response_index(sequence)
            only = torch.arange(plan.size, device=plan.scale.device) == token
            descent.begin(1)
            descent.backward(self.policy.loss(batch, sequence, plan.changed(scale=plan.scale * only), index)[0])
            lengths.append(descent.step() * descent.lr)
            change = self._stats(batch).entropy.double() - before
            own.append(float(change[token]))
            total.append(float(change.sum()))
            self._put(start)
        length = sum(lengths) / len(lengths)
        ones = replace(found, estimates=estimates), replace(found, estimates=estimates | shared)
        seen = zip(ones, (own, total), (OWN, ALL), strict=True)
        return [one.select(chosen.numpy(), change, optimizer=name, length=length) for one, change, name in seen]

    def _stats(self, batch: Batch) -> HeadStats:
        return self.policy.all_stats(batch, self.config.micro_batch_tokens)

    def _weights(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.policy.model.parameters()]

    @torch.no_grad()
    def _put(self, weights: list[Tensor]) -> None:
        for p, value in zip(self.policy.model.parameters(), weights, strict=True):
            p.copy_(value)


class Walked(Exception):
    """Signal that the last watched step is finished."""


class Walk(Trainer):
    """Run that trains up to the last of `steps` and probes each of them. It writes a run log but no checkpoint.

    sgd, alone, first_order: additional probes, see `Watched`. resume: start from the newest checkpoint in `config.out`.
    Raises ValueError if the run needs more than one process or lacks one of the steps, and if the output layer has a
    bias with `first_order`.
    """

    def __init__(
        self,
        config: TrainConfig,
        model_path: str | Path,
        steps: Sequence[int],
        *,
        sgd: bool = False,
        alone: int = 0,
        first_order: bool = False,
        resume: bool = False,
    ) -> None:
        check(config)
        super().__init__(config, model_path, resume)
        outside = [step for step in steps if not self.step <= step < config.steps]
        if outside:
            raise ValueError(f"step {outside[0]} is not among those of this run, {self.step} to {config.steps - 1}")
        if first_order and self.policy.output.bias is not None:
            raise ValueError("--first-order does not support an output layer with a bias")
        self.last = max(steps)
        self.watched = Watched(frozenset(steps), sgd, alone, first_order)
        self.learner = ProbedLearner(self.learner, self.watched)

    def walk(self, report: Report = lambda step, metrics: None) -> list[Probe]:
        """Train, and return the probes. Raises ValueError if training stops early or no probed token has a gradient."""

        def seen(step: int, metrics: dict[str, float]) -> None:
            report(step, metrics)
            if step == self.last:
                raise Walked

        try:
            with contextlib.suppress(Walked):
                self.run(seen)
        except (TrainingStoppedError, RollBackError) as error:
            raise ValueError(str(error)) from None
        if not self.watched.probes:
            raise ValueError("no token had a gradient in the probed updates: nothing to compare")
        return self.watched.probes

    def save(self) -> Path:
        """No-op: the probed run has its own checkpoints."""
        return Path(self.config.out)


def check(config: TrainConfig) -> None:
    """Raise ValueError unless a run of this configuration can be probed."""
    if config.engine.name != "torch" or config.nproc > 1 or config.topology.name != "local":
        raise ValueError("a probe needs one process: --engine.name torch, --nproc 1, --topology.name local")
