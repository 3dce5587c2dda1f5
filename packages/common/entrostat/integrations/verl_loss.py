"""Policy loss for verl of each controller: the plan of a micro-batch, or its part of the plan of an optimizer step.

Shapes: B responses of a micro-batch, T their padded length, N packed response tokens.
"""

from . import verl_version as verl_version  # isort: skip  # refuses an older verl first

import warnings
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from verl.trainer.ppo.core_algos import agg_loss

from ..by_name import list_controllers
from ..chaining import Chain
from ..controller import StepStats
from ..numbers.reduce import DistReduce, LocalReduce
from ..plan import Plan
from ..tokens import Tokens
from .packing import pack, require_fields, unpack
from .verl_mini_batch import MiniBatch
from .verl_settings import ALWAYS, CHAIN, HINTS, PREFIX, Settings


class EntrostatLoss:
    """Policy loss for verl: the plan of a controller, averaged by verl's loss_agg_mode.

    A call with another configuration builds a new controller; a process trains one actor, so there is only one.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.settings: Settings | None = None
        self.controller: Chain
        self.rollouts = 0
        """Number of rollouts observed."""
        self.calls = 0
        self.planned: dict[str, float] = {}
        """`Plan.info` summed over the updates since the last rollout; mean over the micro-batches of an update."""
        self.fields: Mapping[str, Tensor] = {}
        """Fields of Tokens in the next micro-batch that verl does not pass, (B, T) or (B,)."""
        self.group: dist.ProcessGroup | None = None
        """Data-parallel group of this process."""
        self.mini_batch: MiniBatch | None = None
        """Tokens and plan of the optimizer step, if it has several micro-batches and the rule compares their tokens."""

    def __call__(
        self,
        old_log_prob: Tensor,
        log_prob: Tensor,
        advantages: Tensor,
        response_mask: Tensor,
        loss_agg_mode: str = "token-mean",
        config: Any = None,
        rollout_is_weights: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of a micro-batch and its metrics; all tensors are (B, T), `log_prob` has a gradient.

        While tokens of the mini-batch are collected, the loss is zero. Raises ValueError in the same cases as
        `PolicyLossConfig`, and on micro-batches that lack a field.
        """
        if config is None:
            raise ValueError(f"policy loss {PREFIX}{self.name} needs the actor's configuration")
        self.prepare(config, loss_agg_mode)
        mask = response_mask.bool()
        self._check(config, rollout_is_weights)
        given = {
            "row": torch.arange(len(mask), device=mask.device),
            **self.fields,
            "logp": log_prob,
            "old_logp": old_log_prob,
            "advantage": advantages,
        }
        packed = pack(mask, given)
        whole = self.mini_batch
        if whole is None:
            index, plan = None, self._plan(config, packed, len(mask))
        elif whole.plan is None:
            whole.add(packed)
            return log_prob.detach().sum() * 0, {}
        else:
            index, plan = whole.index(packed), whole.plan
        loss = plan.token_loss(
            packed["logp"], packed.get("entropy"), index, truncated_entropy=packed.get("truncated_entropy")
        )
        loss = unpack(mask, loss / (plan.scale if index is None else plan.scale.expand(plan.size)[index]))
        if rollout_is_weights is not None:
            loss = loss * rollout_is_weights
        loss = agg_loss(loss_mat=loss, loss_mask=response_mask, loss_agg_mode=loss_agg_mode, **config.global_batch_info)
        return loss, self._metrics(plan, packed, index)

    def _plan(self, config: Any, packed: Mapping[str, Tensor], responses: int) -> Plan:
        """Return the plan of packed tokens, (N,) each, of this many responses of this process."""
        assert self.settings is not None
        batch = config.global_batch_info
        reduce = rank_reduce(batch.get("dp_size", 1), self.group)
        first = reduce.offset(responses)
        fields = {name: value.detach() for name, value in packed.items()}
        fields["seq_id"] = fields.pop("row") + first
        if "group_id" in fields:
            self._check_groups(config, fields["group_id"][fields["position"] == 0])
            fields["group_id"] = fields["group_id"] + first
        plan = self.controller.plan(Tokens(**fields), reduce, seed=self.settings.seed, step=self.calls)
        self.calls += 1
        size = batch.get("global_batch_size")
        self._add_planned(plan, reduce.total(responses) / size if size else 1.0)
        return plan

    def plan_mini_batch(self, config: Any, responses: int) -> None:
        """Make the plan of the collected tokens, of this many responses of this process."""
        assert self.mini_batch is not None
        if self.mini_batch.parts:  # only the last stage of a pipeline calls the loss
            self.mini_batch.plan = self._plan(config, self.mini_batch.collected(), responses)

    def prepare(self, config: Any, loss_agg_mode: str) -> Chain:
        """Return the controller of this configuration, built once."""
        settings = Settings.of(self.name, config.policy_loss)
        if settings != self.settings:
            self.controller, self.settings = settings.build(), settings
            self.planned, self.rollouts, self.calls = {}, 0, 0
            wanted = self.controller.surrogate.aggregation
            if loss_agg_mode != wanted:
                warnings.warn(
                    f"{PREFIX}{self.name} is published with loss_agg_mode {wanted!r}, here it is {loss_agg_mode!r}",
                    stacklevel=3,
                )
        return self.controller

    def _check(self, config: Any, rollout_is_weights: Tensor | None) -> None:
        """Raise ValueError if a micro-batch lacks something that the controller needs."""
        needs, name = self.controller.needs, self.controller.name
        require_fields(self.controller, ALWAYS | self.fields.keys(), "this batch of verl", HINTS)
        if "rollout_logp" in needs and rollout_is_weights is not None:
            raise ValueError(
                f"controller {name!r} replaces verl's correction: set algorithm.rollout_correction.rollout_is=null"
            )
        assert self.settings is not None
        loops = any(self.controller.state_dict().values())
        if loops and not self.rollouts and self.settings.updates_per_rollout != 0:
            raise ValueError(
                f"controller {name!r} has a schedule or a closed loop, which verl's ActorRolloutRefWorker feeds: with "
                "another worker set policy_loss.updates_per_rollout=0 and call entrostat.integrations.verl.observe"
            )

    def _check_groups(self, config: Any, groups: Tensor) -> None:
        """Raise ValueError if the controller compares the responses to a prompt and some are missing; groups (B,)."""
        if "group_id" not in self.controller.needs:
            return
        _, count = groups.unique(return_counts=True)
        if bool((count != config.rollout_n).any()):
            within = "" if self.mini_batch is not None else ", policy_loss.per_micro_batch=False"
            raise ValueError(
                f"controller {self.controller.name!r} needs all {config.rollout_n} responses to a prompt in one "
                f"optimizer step of one process: set actor.shuffle=False{within}, and train on one GPU or with "
                "trainer.use_v1=False trainer.balance_batch=False"
            )

    def _add_planned(self, plan: Plan, share: float) -> None:
        """Add a micro-batch with this share of the responses of its update."""
        for key, value in plan.info.items():
            self.planned[key] = self.planned.get(key, 0.0) + share * float(value)

    def _metrics(self, plan: Plan, packed: Mapping[str, Tensor], index: Tensor | None) -> dict[str, float]:
        logp, old_logp = packed["logp"].detach(), packed["old_logp"]
        clipped = plan.clipped(logp, index)
        dual = clipped & (packed["advantage"] < 0) & (logp > old_logp)
        size = max(len(logp), 1)
        found = {
            "actor/ppo_kl": (old_logp - logp).sum() / size,
            "actor/pg_clipfrac": (clipped & ~dual).float().sum() / size,
            "actor/pg_clipfrac_lower": dual.float().sum() / size,
        }
        found |= {PREFIX + key: value for key, value in (plan.info | self.controller.metrics()).items()}
        return {key: float(value) for key, value in found.items()}

    def observe(self, entropy: float, **stats: Any) -> None:
        """Let the controller observe a rollout; stats are other fields of StepStats."""
        given: dict[str, Any] = {"step": self.rollouts, "planned": self.planned} | stats
        self.controller.observe(StepStats(entropy=entropy, **given))
        self.rollouts, self.planned = self.rollouts + 1, {}


def rank_reduce(dp_size: int, group: dist.ProcessGroup | None = None) -> LocalReduce:
    """Return a reduction over the data-parallel group, or over all ranks if each process is a data-parallel rank."""
    ranks = dist.get_world_size(group) if dist.is_available() and dist.is_initialized() else 1
    return DistReduce(group) if ranks > 1 and ranks == dp_size else LocalReduce()


LOSSES = {name: EntrostatLoss(name) for name in (CHAIN, *list_controllers())}
"""Registered policy losses, by controller name."""


def loss_of(config: Any) -> EntrostatLoss | None:
    """Return the policy loss that the actor's configuration names; None if it is another project's."""
    mode: str = config.policy_loss.get("loss_mode", "vanilla") if hasattr(config, "policy_loss") else ""
    return LOSSES.get(mode.removeprefix(PREFIX)) if mode.startswith(PREFIX) else None
