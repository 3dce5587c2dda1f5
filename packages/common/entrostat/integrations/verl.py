"""Policy losses for verl: loss_mode "entrostat/<name>" for one controller, "entrostat/chain" for several.

    VERL_USE_EXTERNAL_MODULES=entrostat.integrations.verl
    actor_rollout_ref.actor.policy_loss._target_=entrostat.integrations.verl.PolicyLossConfig
    actor_rollout_ref.actor.policy_loss.loss_mode=entrostat/steer
    +actor_rollout_ref.actor.policy_loss.controller_args.lambda_min=0.7

    old log-probabilities ─► old entropies ─► observe
                                                │
    micro-batch ─► verl's engine ─► ActorWorker: entropy, groups, rewards, … ─► verl's ppo_loss ─► EntrostatLoss ─► plan

verl calls a policy loss with one micro-batch. For a rule that compares tokens, ActorWorker first passes over all
micro-batches of the optimizer step without gradient, and EntrostatLoss makes one plan of them.
Shapes: B responses of a micro-batch, T their padded length, N packed response tokens.
"""

from .verl_version import SUPPORTED_VERL as SUPPORTED_VERL  # isort: skip  # refuses an older one first

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from tensordict import TensorDict
from torch import Tensor
from verl.trainer.ppo.core_algos import register_policy_loss
from verl.utils import tensordict_utils as tu
from verl.workers.config import ActorConfig
from verl.workers.engine_workers import ActorRolloutRefWorker, TrainingWorker

from ..chaining import Chain
from .resuming import STATE_FILE, starts_afresh
from .splitting import compares_tokens
from .verl_batch import (
    FROM_LOGITS,
    OLD_ENTROPY,
    keep_old_entropy,
    logit_statistics,
    micro_batch_fields,
    rollout_entropies,
)
from .verl_loss import LOSSES, EntrostatLoss, loss_of, rank_reduce
from .verl_mini_batch import ROW, MiniBatch, prepare_rows
from .verl_settings import PREFIX, check_actor
from .verl_settings import PolicyLossConfig as PolicyLossConfig

Loss = Callable[..., tuple[Tensor, dict[str, Any]]]
"""verl's `ppo_loss` or a function like it, with its configuration."""


def with_fields(verls: Loss, config: Any) -> Loss:
    """Return verl's `ppo_loss` of this actor, whose policy loss gets the fields of Tokens in the micro-batch too.

    The loss itself for policy losses of others. verl's own term of the entropy is without gradient: a bonus is the
    controller's.
    """
    loss = loss_of(config)
    if loss is None:
        return verls

    def ppo_loss(model_output: Mapping[str, Any], data: TensorDict, dp_group: Any = None) -> Any:
        controller = loss.prepare(config, config.loss_agg_mode)
        loss.fields = micro_batch_fields(model_output, data, from_logits(controller))
        if ROW in data:
            loss.fields["row"] = data[ROW]
        loss.group = dp_group
        detached = {k: v.detach() if k in ("entropy", "sum_pi_squared") else v for k, v in model_output.items()}
        try:
            return verls(model_output=detached, data=data, dp_group=dp_group)
        finally:
            loss.fields = {}

    return ppo_loss


def from_logits(controller: Chain) -> list[str]:
    """Return the fields of Tokens that the controller needs from the logits."""
    bonus = {"truncated_entropy"} if controller.support is not None else set()
    return [name for name in FROM_LOGITS if name in controller.needs | bonus]


class ActorWorker(TrainingWorker):
    """verl's actor with the fields of Tokens that its policy loss lacks, and closed loops that see each rollout."""

    config_of_loss: Any = None
    old_entropy: Tensor | None = None
    """Entropies of the last pass over a rollout (nats), jagged over prompt and response."""

    def set_loss_fn(self, loss_fn: Any) -> None:
        self.config_of_loss = loss_fn.keywords["config"]
        super().set_loss_fn(with_fields(loss_fn, self.config_of_loss))

    def infer_batch(self, data: TensorDict) -> TensorDict:
        output = super().infer_batch(data)
        if output is not None and "entropy" in output:
            self.old_entropy = output["entropy"]
        return output

    def train_mini_batch(self, data: TensorDict) -> TensorDict:
        loss = loss_of(self.config_of_loss)
        if loss is None:
            return super().train_mini_batch(data)
        controller = loss.prepare(self.config_of_loss, self.config_of_loss.loss_agg_mode)
        if self.old_entropy is not None and _same_lengths(self.old_entropy, data["input_ids"]):
            keep_old_entropy(data, self.old_entropy)
        assert loss.settings is not None
        if loss.settings.updates_per_rollout != 0:
            self._observe(loss, data)
        names = from_logits(controller)
        wanted = {"calculate_entropy": "entropy" in controller.needs, "calculate_sum_pi_squared": bool(names)}
        tu.assign_non_tensor(data, **{option: True for option, on in wanted.items() if on})
        with logit_statistics(names, controller.support):
            return super().train_mini_batch(data)

    def train_batch(self, data: TensorDict) -> TensorDict:
        """Make an optimizer step, planned as a whole if its rule compares the tokens of several micro-batches."""
        loss = loss_of(self.config_of_loss)
        if loss is None or not self._plans_whole(loss, data):
            return super().train_batch(data)
        prepare_rows(data, self.engine_config)
        loss.mini_batch = MiniBatch()
        try:
            with self.engine.eval_mode(disable_auto_offload=tu.get(data, "disable_auto_offload", default=False)):
                self.engine.infer_batch(data, loss_function=self.loss_fn)
            loss.plan_mini_batch(self.config_of_loss, len(data))
            return super().train_batch(data)
        finally:
            loss.mini_batch = None

    def _plans_whole(self, loss: EntrostatLoss, data: TensorDict) -> bool:
        """Return True, on all ranks alike, if the step has several micro-batches and its rule compares their tokens."""
        assert loss.settings is not None
        engine = self.engine_config
        one = not engine.use_dynamic_bsz and len(data) <= engine.micro_batch_size_per_gpu
        return not one and not loss.settings.per_micro_batch and compares_tokens(loss.controller)

    def save_checkpoint(self, local_path: str, *args: Any, **kwargs: Any) -> Any:
        saved = super().save_checkpoint(local_path, *args, **kwargs)
        if loss_of(self.config_of_loss) is not None and local_path and _is_first_of_node():
            partial = Path(local_path) / f"{STATE_FILE}.{os.environ.get('RANK', '0')}"
            torch.save(state_dict(), partial)
            partial.replace(Path(local_path) / STATE_FILE)  # whole at once: nodes may share the folder
        return saved

    def load_checkpoint(self, local_path: str, *args: Any, **kwargs: Any) -> Any:
        """Load model and controllers. Raises ValueError if a target is relative and its state is not there."""
        loss = loss_of(self.config_of_loss)
        if loss is not None and local_path:
            controller = loss.prepare(self.config_of_loss, self.config_of_loss.loss_agg_mode)
            path = Path(local_path) / STATE_FILE
            saved = torch.load(path, weights_only=True) if path.is_file() else {}
            if loss.name in saved:
                load_state_dict({loss.name: saved[loss.name]}, self.config_of_loss)
            else:
                said = starts_afresh(controller, local_path)
                if _is_first_of_node():
                    print(said, flush=True)
        return super().load_checkpoint(local_path, *args, **kwargs)

    def _observe(self, loss: EntrostatLoss, data: TensorDict) -> None:
        reduce = rank_reduce(self.engine.get_data_parallel_size(), self.engine.get_data_parallel_group())
        entropy = reduce.mean(rollout_entropies(data).to(self.device_name)).item()
        steps = self.config_of_loss.optim.total_training_steps
        delay = 0 if OLD_ENTROPY in data else None  # without the pass they are of the policy that sampled
        loss.observe(entropy, total_steps=steps if steps > 0 else None, delay=delay)


def _is_first_of_node() -> bool:
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _same_lengths(kept: Tensor, ids: Tensor) -> bool:
    """Return True if two jagged tensors have rows of the same lengths, as the pass over the rollout of a batch has."""
    a, b = (cast(Any, jagged).offsets().cpu() for jagged in (kept, ids))
    return torch.equal(a, b)


def _check_with(verls: Callable[[Any], None]) -> Callable[[Any], None]:
    def check(config: Any) -> None:
        verls(config)
        check_actor(config)

    return check


def _install() -> None:
    """Register the policy losses, check actors as verl reads its configuration, and make verl build our actors."""
    for name, loss in LOSSES.items():
        register_policy_loss(PREFIX + name)(loss)
    setattr(ActorConfig, "__post_init__", _check_with(ActorConfig.__post_init__))  # noqa: B010
    ActorRolloutRefWorker.actor_worker_cls = ActorWorker


_install()


# Called by users ------------------------------------------------------------------------------------------------------


def active() -> dict[str, EntrostatLoss]:
    """Return the losses of this process that have been called, by controller name."""
    return {name: loss for name, loss in LOSSES.items() if loss.settings is not None}


def observe(entropy: float, **stats: Any) -> None:
    """Let closed loops observe a rollout's token-mean entropy (nats). Call once per rollout in every actor process.

    stats: other fields of `entrostat.StepStats`; `step` is the number of earlier observations if not given.
    Needed only with `updates_per_rollout=0`.
    """
    for loss in active().values():
        loss.observe(entropy, **stats)


def state_dict() -> dict[str, Any]:
    """Return the state of this process's controllers, the same on every rank: `entrostat.pt` in verl's checkpoints."""
    return {
        name: {
            "controller": loss.controller.state_dict(),
            "rollouts": loss.rollouts,
            "calls": loss.calls,
            "planned": dict(loss.planned),
        }
        for name, loss in active().items()
    }


def load_state_dict(state: Mapping[str, Any], config: Any) -> None:
    """Restore the state from `state_dict`, in every actor process before its first update; `config` is the actor's.

    Raises ValueError on the state of other controllers.
    """
    for name, saved in state.items():
        loss = LOSSES[name]
        loss.prepare(config, config.loss_agg_mode)
        loss.controller.load_state_dict(saved["controller"])
        loss.rollouts, loss.calls = saved["rollouts"], saved["calls"]
        loss.planned = dict(saved.get("planned", {}))
