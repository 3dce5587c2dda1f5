"""Updates of the policy from one rollout.

    experience ─► mini-batch ─► Tokens ─► plan ─► [micro-batch ─► policy ─► plan.loss ─► backward]* ─► engine.step

The plan sees the whole mini-batch, so the update does not depend on the split into micro-batches. Sequences in which
no token can have a gradient (advantage 0 and no bonus) skip the model. Each rank holds its share of the mini-batch;
the update equals that of one process holding all sequences.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from entrostat import Chain, Plan, Tokens, diagnose
from entrostat.diagnostics import merge, to_floats

from ..kernels import HeadStats
from ..policy.engine import Engine, NonFiniteError
from ..policy.policy import Policy
from ..process.clock import Clock
from ..rollout.mismatch import mismatch
from ..sequences.batch import padded
from ..sequences.mini_batch import mini_batches
from ..settings.config import OptimConfig
from .experience import Experience
from .guard import Guard

POLICY_FIELDS = frozenset({"logp", "entropy", "s2", "s2l", "s2ll"})
"""Fields of Tokens that are statistics of the current policy."""
Watch = Callable[[Tokens, Plan], None]
"""Callback with the tokens of an update, their statistics at the update, and its plan."""


def look_away(tokens: Tokens, plan: Plan) -> None:
    """Ignore the update."""


class Learner:
    """Learner: turns experience into optimizer steps."""

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        controller: Chain,
        config: OptimConfig,
        seed: int,
        clock: Clock,
        updates: int,
        guard: Guard | None = None,
    ) -> None:
        """updates: optimizer steps per full rollout step; numbers the updates of a run."""
        self.clock = clock
        self.guard = guard or Guard()
        self.updates = updates
        self.policy = policy
        self.engine = engine
        self.controller = controller
        self.config = config
        self.seed = seed
        self.planned: dict[str, float] = {}
        """Sums of `Plan.info` over the updates of the last rollout step, for the controller's next observation."""

    def update(self, experience: Experience, step: int, watch: Watch = look_away) -> dict[str, float]:
        """Run all updates of rollout step `step`; return their merged metrics."""
        updates: list[dict[str, float | Tensor]] = []
        planned: dict[str, float] = defaultdict(float)
        for i, sequences in enumerate(self._mini_batches(experience, step)):
            mini = replace(experience.select(sequences), sampled=experience.sampled and i == 0)
            current = None
            moved = i > 0 and self.config.stats == "fresh"
            if moved and self.controller.needs & POLICY_FIELDS:
                with self.clock.phase("forward"):
                    current = self.policy.all_stats(mini.batch, self.config.micro_batch_tokens, self.engine.ranks)
            tokens, reduce = mini.tokens(current), self.engine.ranks.reduce
            with self.clock.phase("plan"):
                plan = self.controller.plan(tokens, reduce, seed=self.seed, step=step * self.updates + i)
            info = {key: float(value) for key, value in plan.info.items()}
            updates.append({**self.optimize(mini, plan, watch), **info})
            for key, value in info.items():
                planned[key] += value
            if self.guard.stops_for or "mismatch" in self.guard.left_out:
                break
        self.planned = dict(planned)
        return to_floats(merge(updates))

    def forget(self) -> None:
        """Begin AdamW's moments anew if they are to go with the reference policy, which was reset."""
        if self.config.reset_with_reference:
            self.engine.forget()

    def leave_out(self) -> dict[str, float]:
        """Take no update of a rollout step; return no metrics."""
        self.planned = {}
        return {}

    def _mini_batches(self, experience: Experience, step: int) -> Iterator[Tensor]:
        """Yield this rank's sequences of each update; updates take whole groups, the same in each pass."""
        group = experience.group
        prompts = self.engine.ranks.most(int(group.max()) + 1 if len(group) else 0)
        trained = torch.ones(len(group), dtype=torch.bool) if experience.trained is None else experience.trained
        parts = mini_batches(prompts, self.config.mini_batch_size, self.seed, step)
        for some in parts * self.config.ppo_epochs:
            yield (torch.isin(group, some) & trained).nonzero()[:, 0]

    def optimize(self, mini: Experience, plan: Plan, watch: Watch = look_away) -> dict[str, float]:
        """Take one optimizer step under the plan of a mini-batch; no step if no token can have a gradient.

        Metrics of sequences that skip the model use their statistics from before the first update. If these were
        computed while sampling, and the policy has not moved since, the passes measure their mismatch.
        """
        now = HeadStats(*(x.clone() for x in mini.stats))
        loss_sum = torch.zeros((), dtype=torch.float64, device=now.logp.device)
        active = plan.active().cpu()
        live = mini.owner[active].unique()
        slices = self.policy.slices(mini.batch, live, self.config.micro_batch_tokens)
        passes = self.engine.begin(len(slices))
        lr = self.engine.lr
        try:
            for some in padded(slices, passes):
                index = mini.batch.response_index(some)
                with self.clock.phase("forward"):
                    loss, stats = self.policy.loss(mini.batch, some, plan, index, active[index])
                loss_sum += loss.detach()
                with self.clock.phase("backward"):
                    self.engine.backward(loss)
                place = index.to(loss_sum.device, non_blocking=True)
                for x, fresh in zip(now, stats, strict=True):
                    x[place] = fresh
            tokens = mini.tokens(now)
            watch(tokens, plan)
            total = float(self.engine.ranks.total(loss_sum))
            gap = self._mismatch(mini, now, live) if mini.sampled else {}
            near = not math.isfinite(total) or self.guard.allows("mismatch", gap.get("mismatch/logp_gap", 0.0))
            if not near:  # a loss of NaN is told as such, below
                self.engine.discard()
                return gap
            norm = self._step(total) if passes else 0.0
        except NonFiniteError as error:
            self.guard.passes(error)
            self.engine.discard()
            return {}
        return {
            "loss": total,
            "grad_norm": norm,
            "lr": lr,
            **gap,
            **to_floats(diagnose(tokens, plan, reduce=self.engine.ranks.reduce)),
        }

    def _mismatch(self, mini: Experience, now: HeadStats, live: Tensor) -> dict[str, float]:
        """Return the mismatch of the sequences that have passed through the model, or else of one; see `mismatch`.

        A broken sampler may earn no reward, and with it no update.
        """
        assert mini.before.rollout_logp is not None
        ranks, index = self.engine.ranks, mini.batch.response_index(live).to(now.logp.device)
        if ranks.most(len(live)):
            return mismatch(now.logp[index], mini.before.rollout_logp[index], ranks)
        one = torch.arange(min(1, len(mini.batch)))
        logp = self.policy.all_stats(mini.batch.select(one), self.config.micro_batch_tokens, ranks).logp
        return mismatch(logp, mini.before.rollout_logp[: len(logp)], ranks)

    def _step(self, loss: float) -> float:
        """Take an optimizer step unless a guard forbids it; return the norm of the gradient."""
        allows = self.guard.allows
        self.engine.allows = lambda norm: allows("loss", abs(loss)) and allows("grad_norm", norm)
        with self.clock.phase("optimizer"):
            return self.engine.step()
