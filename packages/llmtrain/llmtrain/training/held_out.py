"""Held-out questions of a run: evaluation and probes, asked while the engine is awake for a rollout."""

from typing import NamedTuple

from entrostat.logs.runlog import RunLog
from entrostat.numbers.draws import generator_seed

from ..evaluation.evaluator import Evaluator, Samples
from ..process.clock import Clock
from ..rollout.rollout_engine import RolloutEngine, Sampler
from ..sequences.rollouts import Rollouts
from ..settings.config import TrainConfig
from .guard import TrainingStoppedError
from .probes import Prober
from .telemetry import NoLog


class Asked(NamedTuple):
    """Responses that are not trained on; None where nothing was due."""

    evaluation: Samples | None
    probes: Rollouts | None


class HeldOut:
    """Evaluation and probes of a run."""

    def __init__(
        self, config: TrainConfig, evaluator: Evaluator, prober: Prober, rollout: RolloutEngine, clock: Clock
    ) -> None:
        self.config, self.evaluator, self.prober = config, evaluator, prober
        self.rollout, self.clock = rollout, clock

    def is_due_at_the_end(self, step: int) -> bool:
        """Return True if the policy after the last update is asked too."""
        return bool(self.config.eval.every) or self.prober.is_due(step)

    def ask(self, step: int, last: bool = False) -> Asked:
        """Return the responses that are due at a step. The engine must have its weights. Raises RolloutError."""
        every, asked = self.config.eval.every, None
        if every and (last or step % every == 0):
            seed = generator_seed("eval", self.config.seed, step)
            with self.clock.phase("eval"):
                prober = self.prober
                asked = self.evaluator.sample(Sampler(self.rollout, prober.tokenizer, seed, prober.ranks.size))
        return Asked(asked, self.prober.sample(self.rollout) if self.prober.is_due(step) else None)

    def measure(self, asked: Asked, step: int) -> dict[str, float]:
        """Return the metrics of the evaluation under the policy; none if it was not due.

        Raises TrainingStoppedError at the first step if the metric of the best checkpoints is not among them.
        """
        if asked.evaluation is None:
            return {}
        policy, trained_at = self.evaluator.policy, self.evaluator.policy.temperature
        policy.temperature = self.config.rollout.sampling.temperature
        with self.clock.phase("eval"):
            found = self.evaluator.measure(asked.evaluation)
        policy.temperature = trained_at
        wanted = self.config.checkpoint.keep_best
        if step == 0 and wanted.startswith("eval/") and wanted not in found:
            names = ", ".join(key for key in found if not key.endswith(("/low", "/high")))
            raise TrainingStoppedError(f"checkpoint.keep_best {wanted} is not among the metrics: {names}")
        return found

    def log_probes(self, asked: Asked, step: int, log: RunLog | NoLog) -> None:
        """Log the answers to probes, weighted by the controller's last observation."""
        if asked.probes is not None:
            log.probes(step, self.prober.answers(asked.probes, step))
