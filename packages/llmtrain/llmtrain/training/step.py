"""One rollout step, from questions to optimizer steps.

prompts ► rollout ► verifier ► advantages ► statistics ► controller.observe ► learner.update ► metrics
   ▲                                                                                │
   └───────────────────────────── the same weights ─────────────────────────────────┘
"""

from dataclasses import dataclass
from statistics import median

import torch
from transformers import PreTrainedTokenizerBase

from entrostat import Chain, StepStats
from entrostat.diagnostics import EntropyTrace, to_floats
from entrostat.logs.runlog import RunLog

from ..policy.policy import Policy
from ..process.clock import Clock
from ..process.gpu_memory import peaks
from ..process.ranks import Ranks
from ..rollout.mismatch import mismatch
from ..sequences.collected import Collected
from ..sequences.rollouts import Rollouts
from ..sequences.samples import TokenTable, pieces
from ..settings.config import TrainConfig
from ..tasks import Task
from .annotator import Annotator
from .collect import Collector
from .guard import Guard
from .held_out import HeldOut
from .learner import Learner
from .responses import response_covariance
from .sending import Sending
from .telemetry import NoLog


@dataclass(kw_only=True, eq=False)
class Step:
    """The parts of a rollout step."""

    config: TrainConfig
    task: Task
    tokenizer: PreTrainedTokenizerBase
    policy: Policy
    controller: Chain
    sending: Sending
    held_out: HeldOut
    collector: Collector
    annotator: Annotator
    learner: Learner
    guard: Guard
    trace: EntropyTrace
    log: RunLog | NoLog
    clock: Clock
    ranks: Ranks

    def take(self, step: int) -> dict[str, float]:
        """Take a rollout step; return its metrics."""
        given = self._set_temperature(step) | self._set_group_size(step)
        with self.clock.phase("other"):
            self.sending.send(step)
            asked = self.held_out.ask(step)
            found = self.collector.collect(step)
            self.sending.release()
            evaluated = self.held_out.measure(asked, step)

            self.policy.support = self.controller.support  # of the last observation, in statistics and in the update
            if self.annotator.reset_reference(step):
                self.learner.forget()
            experience, learned = self.annotator.experience(found)
            tokens, rollouts = experience.before, found.rollouts
            entropy = self.ranks.mean(tokens.get("entropy"))
            at_one = self.config.rollout.train_at_one  # the samples are of another temperature
            gap = {} if experience.sampled or at_one else mismatch(tokens.get("logp"), rollouts.logp, self.ranks)
            near = self.guard.allows("mismatch", gap.get("mismatch/logp_gap", 0.0))
            proceeds = self.guard.allows("entropy", entropy) and near

            self.controller.observe(self.observed(step, entropy))
            metrics = {
                **given,
                **evaluated,
                **to_floats(self.trace.observe(entropy)),
                **found.metrics,
                **self._ages(rollouts, step),
                **learned,
                "covariance/response": response_covariance(
                    tokens.get("logp"), rollouts.response_lengths, found.advantage, rollouts.prompt_index, self.ranks
                ),
                **gap,
                **{key: float(value) for key, value in self.controller.metrics().items()},
            }
            self.held_out.log_probes(asked, step, self.log)

            shown = int(found.advantage.ne(0).byte().argmax()) if len(found.advantage) else -1
            table = TokenTable(-1 if shown < 0 else int(found.sequence[shown]))
            updates = self.learner.update(experience, step, table.see) if proceeds else self.learner.leave_out()
            self.trace.expect(updates.get("flow/total"))
        if shown >= 0:
            self._log_response(step, found, shown, table)
        return updates | metrics | peaks() | self.guard.metrics() | self._times(metrics["tokens"])

    def _set_temperature(self, step: int) -> dict[str, float]:
        """Set the sampling temperature of this step, and that of the policy to train; return it if it moves."""
        rollout, asked = self.config.rollout, self.controller.temperature
        moves = asked is not None or isinstance(rollout.temperature, str)
        heat = rollout.temperature_at(step, self.config.steps) if asked is None else float(asked)
        self.collector.batches.temperature = heat
        self.annotator.set_temperature(1.0 if rollout.train_at_one else heat)
        return {"temperature": heat} if moves else {}

    def _set_group_size(self, step: int) -> dict[str, float]:
        """Set the number of responses per prompt of this step; return it if it moves."""
        self.collector.batches.n = self.config.rollout.n_at(step, self.config.steps)
        return {"rollout/n": float(self.collector.batches.n)} if isinstance(self.config.rollout.n, str) else {}

    def observed(self, step: int, entropy: float) -> StepStats:
        """Return what the controller observes."""
        prompts, steps = self.collector.batches.size, self.config.steps
        return StepStats(
            entropy=entropy,
            step=step,
            total_steps=steps,
            epoch=self.task.epoch(step, prompts),
            epochs=self.task.epoch(steps - 1, prompts),
            delay=0,  # entropies are of the present policy, however old the tokens are
            planned=self.learner.planned,
        )

    def _ages(self, rollouts: Rollouts, step: int) -> dict[str, float]:
        """Return the share of responses that ended, and the age of the weights that drew the tokens, in steps."""
        age = step - rollouts.version
        most = self.ranks.most(int(age.max()) if len(age) else 0)
        finished = self.ranks.mean(rollouts.finished)
        return {"finished": finished, "staleness/mean": self.ranks.mean(age), "staleness/max": float(most)}

    def _times(self, tokens: float) -> dict[str, float]:
        """Return the times of the phases, and the tokens of all ranks per second of training."""
        times = self.clock.read()
        seconds = sum(value for name, value in times.items() if name not in ("time/eval", "time/probes"))
        return {
            "tokens_per_second": tokens / seconds,
            "tokens_per_second_per_gpu": tokens / seconds / (self.ranks.size + self.config.engine_gpus),
            **slowest(times, self.ranks),
            **times,
            "time/step": seconds,
        }

    def _log_response(self, step: int, found: Collected, shown: int, table: TokenTable) -> None:
        """Log one response with its tokens; only it is decoded."""
        one = found.rollouts.take(torch.tensor([shown]))
        self.log.sample(
            step,
            prompt=self.tokenizer.decode(one.prompt_ids[int(one.prompt_index)]),
            response=one.texts(self.tokenizer)[0],
            reward=found.reward[shown].item(),
            tokens=pieces(self.tokenizer, one.responses()[0]),
            **table.columns,
        )


def slowest(times: dict[str, float], ranks: Ranks) -> dict[str, float]:
    """Return which of several ranks took longest for its own work, and how much longer than their median."""
    if ranks.size == 1:
        return {}
    own = ranks.gather([times.get("time/rollout", 0.0) + times.get("time/forward", 0.0)])
    last = max(range(len(own)), key=own.__getitem__)
    return {"time/slowest_rank": float(last), "time/behind": own[last] - median(own)}
