"""Policy losses for verl: loss_mode "entrostat/<name>" for one controller, "entrostat/chain" for several.

    VERL_USE_EXTERNAL_MODULES=entrostat.integrations.verl
    actor_rollout_ref.actor.policy_loss._target_=entrostat.integrations.verl.PolicyLossConfig
    actor_rollout_ref.actor.policy_loss.loss_mode=entrostat/clip_cov
    +actor_rollout_ref.actor.policy_loss.controller_args.k=0.002

verl calls a policy loss with one micro-batch, without entropies; docs/verl.md lists the effect on each controller.
Shapes: B responses of a micro-batch, T their padded length, N packed response tokens.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
import verl
from torch import Tensor
from verl.trainer.ppo.core_algos import agg_loss, register_policy_loss
from verl.workers.config import PolicyLossConfig as VerlPolicyLossConfig

from ..by_name import list_controllers, make
from ..chaining import Chain
from ..controller import StepStats
from ..plan import Plan
from ..reduce import DistReduce, LocalReduce
from ..tokens import Tokens
from .packing import pack, require_fields, unpack

SUPPORTED_VERL = "0.9."
PREFIX = "entrostat/"
CHAIN = "chain"
"""Loss mode that takes its controllers from `policy_loss.controller`."""
AVAILABLE = frozenset({"logp", "old_logp", "seq_id", "position"})
"""Fields of Tokens that a policy loss in verl can fill, besides the advantage."""
HINTS = {
    "rollout_logp": "verl corrects by itself, algorithm.rollout_correction",
    "ref_logp": "verl has a KL term of its own, actor.use_kl_loss",
    "entropy": "verl passes no entropy to a policy loss",
    "old_entropy": "verl passes no entropy to a policy loss",
}
OURS = ("aggregation", "denominator", "constant")
"""Settings of surrogates that verl's loss_agg_mode decides."""


if not verl.__version__.startswith(SUPPORTED_VERL):
    warnings.warn(f"written for verl {SUPPORTED_VERL}x, found {verl.__version__}", stacklevel=2)


@dataclass
class PolicyLossConfig(VerlPolicyLossConfig):
    """verl's policy-loss configuration with the settings of controllers.

    Raises ValueError, before anything is loaded, on an unknown controller or hyperparameter, on a controller that needs
    a field of Tokens that verl does not provide, and on a closed loop that would observe nothing.
    """

    controller: str = ""
    """Controller names joined by +, for loss_mode "entrostat/chain"."""
    controller_preset: str = "paper"
    """Preset of the controller: paper or released."""
    controller_args: dict = field(default_factory=dict)
    """Hyperparameters of the controller."""
    updates_per_rollout: int | None = None
    """Optimizer steps between rollouts, ppo_epochs · train_batch_size / ppo_mini_batch_size: closed loops then observe
    the mean of −log π_old over the tokens of each rollout. 0 if `observe` is called instead."""
    seed: int = 0
    """Seed of the controllers' draws."""

    def __post_init__(self) -> None:
        if self.loss_mode.startswith(PREFIX):
            Settings.of(self.loss_mode.removeprefix(PREFIX), self).build()


@dataclass(frozen=True)
class Settings:
    """Settings of the controller, from a loss mode and a policy-loss configuration."""

    spec: str
    preset: str
    args: Mapping[str, Any]
    updates_per_rollout: int | None
    seed: int

    @staticmethod
    def of(name: str, config: Any) -> "Settings":
        """Return the settings in any configuration with `get`; defaults if its `_target_` is not PolicyLossConfig."""
        spec = (config.get("controller", "") or "") if name == CHAIN else name
        if not spec:
            raise ValueError(f"loss_mode {PREFIX}{CHAIN} needs policy_loss.controller, names joined by +")
        return Settings(
            spec,
            config.get("controller_preset", "paper"),
            dict(config.get("controller_args", None) or {}),
            config.get("updates_per_rollout", None),
            config.get("seed", 0),
        )

    def build(self) -> Chain:
        """Return the controller. Raises ValueError if verl cannot run it, or on a setting that averages tokens."""
        for key in self.args:
            if key.rpartition(".")[2] in OURS:
                raise ValueError(f"{key}: verl's actor.loss_agg_mode decides how tokens are averaged")
        controller = make(self.spec, self.preset, **self.args)
        require_fields(controller, AVAILABLE, "a policy loss in verl", HINTS)
        if any(controller.state_dict().values()) and self.updates_per_rollout is None:
            raise ValueError(
                f"controller {controller.name!r} has a schedule or a closed loop: set policy_loss.updates_per_rollout "
                "to ppo_epochs · train_batch_size / ppo_mini_batch_size, or to 0 and call "
                "entrostat.integrations.verl.observe"
            )
        return controller


class RolloutEntropy:
    """Mean of −log π_old over a rollout, whose expectation is the token-mean entropy at the sampling temperature.

    A mini-batch ends when this process has seen its share of the rows, however they are split into micro-batches.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.updates = 0
        self.total = torch.zeros(2, dtype=torch.float64)
        """Sum of −log π_old (nats) and number of tokens in this process."""

    def add(self, old_logp: Tensor, rows: int, rows_per_update: int, updates_per_rollout: int) -> Tensor | None:
        """Add a micro-batch. Return the totals of the rollout if this completes it, else None."""
        self.total += torch.tensor([-old_logp.sum(dtype=torch.float64).item(), float(len(old_logp))])
        self.rows += rows
        if self.rows < rows_per_update:
            return None
        self.rows, self.updates = 0, self.updates + 1
        if self.updates < updates_per_rollout:
            return None
        total = self.total
        self.updates, self.total = 0, torch.zeros(2, dtype=torch.float64)
        return total


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
        self.measured = RolloutEntropy()

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

        Raises ValueError in the same cases as `PolicyLossConfig`.
        """
        if config is None:
            raise ValueError(f"policy loss {PREFIX}{self.name} needs the actor's configuration")
        self._prepare(config, loss_agg_mode)
        batch = config.global_batch_info
        reduce = rank_reduce(batch.get("dp_size", 1))
        mask = response_mask.bool()
        rows = torch.arange(len(mask), device=mask.device) + reduce.offset(len(mask))
        fields = {"logp": log_prob.detach(), "old_logp": old_log_prob, "advantage": advantages, "seq_id": rows}
        tokens = Tokens(**pack(mask, fields))
        assert self.settings is not None
        plan = self.controller.plan(tokens, reduce, seed=self.settings.seed, step=self.calls)
        loss = unpack(mask, plan.token_loss(log_prob[mask]) / plan.scale)
        if rollout_is_weights is not None:
            loss = loss * rollout_is_weights
        loss = agg_loss(loss_mat=loss, loss_mask=response_mask, loss_agg_mode=loss_agg_mode, **batch)
        metrics = self._metrics(plan, tokens)
        self.calls += 1
        self._feed(tokens, len(mask), batch, reduce)
        return loss, metrics

    def _prepare(self, config: Any, loss_agg_mode: str) -> None:
        settings = Settings.of(self.name, config.policy_loss)
        if settings == self.settings:
            return
        self.controller, self.settings = settings.build(), settings
        self.measured, self.rollouts, self.calls = RolloutEntropy(), 0, 0
        wanted = self.controller.surrogate.aggregation
        if loss_agg_mode != wanted:
            warnings.warn(
                f"{PREFIX}{self.name} is published with loss_agg_mode {wanted!r}, here it is {loss_agg_mode!r}",
                stacklevel=3,
            )

    def _metrics(self, plan: Plan, tokens: Tokens) -> dict[str, float]:
        assert tokens.logp is not None
        assert tokens.old_logp is not None
        clipped = plan.clipped(tokens.logp)
        dual = clipped & (tokens.advantage < 0) & (tokens.logp > tokens.old_logp)
        size = max(tokens.size, 1)
        found = {
            "actor/ppo_kl": (tokens.old_logp - tokens.logp).sum() / size,
            "actor/pg_clipfrac": (clipped & ~dual).float().sum() / size,
            "actor/pg_clipfrac_lower": dual.float().sum() / size,
        }
        found |= {PREFIX + key: value for key, value in (plan.info | self.controller.metrics()).items()}
        return {key: float(value) for key, value in found.items()}

    def _feed(self, tokens: Tokens, rows: int, batch: Mapping[str, Any], reduce: LocalReduce) -> None:
        """Add a micro-batch to the rollout's entropy; if it completes the rollout, let the controller observe it."""
        assert self.settings is not None
        if not self.settings.updates_per_rollout:
            return
        size, ranks = batch.get("global_batch_size"), batch.get("dp_size", 1)
        if size is None:
            raise ValueError("updates_per_rollout needs verl's global_batch_size: set it to 0 and call observe instead")
        if _world_size() > 1 and not isinstance(reduce, DistReduce):
            raise ValueError(
                f"updates_per_rollout needs every process to be a data-parallel rank, but {_world_size()} processes "
                f"have {ranks}: set it to 0 and call observe instead"
            )
        assert tokens.old_logp is not None
        total = self.measured.add(tokens.old_logp, rows, size // ranks, self.settings.updates_per_rollout)
        if total is not None:
            entropy, count = reduce.sum(total.to(tokens.advantage.device)[:, None]).tolist()
            self.observe(StepStats(entropy=entropy / count if count else math.nan, step=self.rollouts))

    def observe(self, stats: StepStats) -> None:
        self.controller.observe(stats)
        self.rollouts += 1


def _world_size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank_reduce(dp_size: int) -> LocalReduce:
    """Return a reduction over all ranks if each process is a data-parallel rank, else over this process."""
    return DistReduce() if _world_size() > 1 and _world_size() == dp_size else LocalReduce()


LOSSES = {name: EntrostatLoss(name) for name in (CHAIN, *list_controllers())}
"""Registered policy losses, by controller name."""
for _name, _loss in LOSSES.items():
    register_policy_loss(PREFIX + _name)(_loss)


def active() -> dict[str, EntrostatLoss]:
    """Return the losses of this process that have been called, by controller name."""
    return {name: loss for name, loss in LOSSES.items() if loss.settings is not None}


def observe(entropy: float, **stats: Any) -> None:
    """Let closed loops observe a rollout's token-mean entropy (nats). Call once per rollout in every actor process.

    stats: other fields of `entrostat.StepStats`; `step` is the number of earlier observations if not given.
    """
    for loss in active().values():
        loss.observe(StepStats(**({"step": loss.rollouts} | stats), entropy=entropy))


def state_dict() -> dict[str, Any]:
    """Return the state of this process's controllers, the same on every rank. verl's checkpoints do not contain it."""
    return {
        name: {"controller": loss.controller.state_dict(), "rollouts": loss.rollouts, "calls": loss.calls}
        for name, loss in active().items()
    }


def load_state_dict(state: Mapping[str, Any], config: Any) -> None:
    """Restore the state from `state_dict`, in every actor process before its first update; `config` is the actor's.

    Raises ValueError on the state of other controllers.
    """
    for name, saved in state.items():
        loss = LOSSES[name]
        loss._prepare(config, config.loss_agg_mode)
        loss.controller.load_state_dict(saved["controller"])
        loss.rollouts, loss.calls = saved["rollouts"], saved["calls"]
