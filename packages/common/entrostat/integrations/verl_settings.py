"""Settings of controllers in verl's configuration, and the settings of verl's that they replace."""

from . import verl_version as verl_version  # isort: skip  # refuses an older verl first

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verl.workers.config import ActorConfig
from verl.workers.config import PolicyLossConfig as VerlPolicyLossConfig

from ..by_name import make
from ..chaining import Chain
from .packing import require_fields
from .verl_batch import FROM_LOGITS

PREFIX = "entrostat/"
CHAIN = "chain"
"""Loss mode that takes its controllers from `policy_loss.controller`."""
ALWAYS = frozenset({"logp", "old_logp", "seq_id", "position", "turn_id"})
"""Fields of Tokens that verl passes to a policy loss, besides the advantage."""
AVAILABLE = ALWAYS | {"entropy", "old_entropy", "reward", "group_id", "ref_logp", "rollout_logp", *FROM_LOGITS}
"""Fields of Tokens that can be filled, some only with the settings in HINTS."""
LOGITS = "only verl's FSDP engine without fused kernels shows the logits: actor.strategy=fsdp, use_fused_kernels=False"
HINTS = {
    "rollout_logp": "set actor_rollout_ref.rollout.calculate_log_probs=True",
    "ref_logp": "set actor.use_kl_loss=True and actor.kl_loss_coef=0, so that verl loads the reference policy",
    "entropy": "train with verl's ActorRolloutRefWorker, which computes it",
    "old_entropy": "leave algorithm.rollout_correction.bypass_mode off, which skips the pass over the rollout",
    "reward": "train with a trainer that passes rm_scores to the actor",
    "group_id": "train with a trainer that passes uid to the actor",
    "proxy_logp": "verl's pass over the rollout gives no log-probability under a proxy",
    **dict.fromkeys(FROM_LOGITS, LOGITS),
}
"""Setting or reason for each field that may be missing."""
OURS = ("aggregation", "denominator", "constant")
"""Settings of surrogates that verl's loss_agg_mode decides."""
REPLACED = {
    "clip_ratio": "set eps_low and eps_high in policy_loss.controller_args",
    "clip_ratio_low": "set eps_low in policy_loss.controller_args",
    "clip_ratio_high": "set eps_high in policy_loss.controller_args",
    "clip_ratio_c": "set dual_clip in policy_loss.controller_args",
    "tau_pos": "set tau_positive of sapo in policy_loss.controller_args",
    "tau_neg": "set tau_negative of sapo in policy_loss.controller_args",
    "entropy_coeff": "add entropy_bonus to the controller",
}
"""Settings of verl's actor that the controller replaces, each with the setting to use instead."""
REPLACED_LOSS = {
    "clip_cov_ratio": "set k of clip_cov in policy_loss.controller_args",
    "clip_cov_lb": "set omega_low of clip_cov in policy_loss.controller_args",
    "clip_cov_ub": "set omega_high of clip_cov in policy_loss.controller_args",
    "kl_cov_ratio": "set k of kl_cov in policy_loss.controller_args",
    "ppo_kl_coef": "set beta of kl_cov in policy_loss.controller_args",
    "dro_beta": "set beta of dro in policy_loss.controller_args",
}
"""The same for the settings of verl's policy loss."""


@dataclass
class PolicyLossConfig(VerlPolicyLossConfig):
    """verl's policy-loss configuration with the settings of controllers.

    Raises ValueError, before anything is loaded, on an unknown controller or hyperparameter, and on a controller that
    needs a field of Tokens that verl does not provide.
    """

    controller: str = ""
    """Controller names joined by +, for loss_mode "entrostat/chain"."""
    controller_preset: str = "paper"
    """Preset of the controller: paper or released."""
    controller_args: dict = field(default_factory=dict)
    """Hyperparameters of the controller."""
    updates_per_rollout: int | None = None
    """0 if `observe` is called instead of the actor; other numbers have no effect."""
    per_micro_batch: bool = False
    """Apply rules that compare tokens within each micro-batch, as verl's own losses do: saves a pass, other results."""
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
    per_micro_batch: bool
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
            flat(config.get("controller_args", None) or {}),
            config.get("updates_per_rollout", None),
            bool(config.get("per_micro_batch", False)),
            config.get("seed", 0),
        )

    def build(self) -> Chain:
        """Return the controller. Raises ValueError if verl cannot run it, or on a setting that averages tokens."""
        for key in self.args:
            if key.rpartition(".")[2] in OURS:
                raise ValueError(f"{key}: verl's actor.loss_agg_mode decides how tokens are averaged")
        controller = make(self.spec, self.preset, **self.args)
        for part in controller.parts:
            if part.reset_every:
                raise ValueError(
                    f"{part.name}: verl never changes its reference policy: set reset_every to 0; to reset it, start a "
                    "new run from a checkpoint (actor_rollout_ref.model.path)"
                )
        require_fields(controller, AVAILABLE, "verl", HINTS)
        return controller


def flat(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return hyperparameters with the names of `make`: Hydra nests `steer.lambda_min`."""
    found: dict[str, Any] = {}
    for name, value in args.items():
        nested = {f"{name}.{inner}": v for inner, v in value.items()} if isinstance(value, Mapping) else {name: value}
        found |= nested
    return found


def check_actor(config: Any) -> None:
    """Raise ValueError if verl's actor has a setting that its controller replaces, or lacks one that it needs.

    No-op for policy losses of others.
    """
    loss = config.policy_loss
    mode = loss.get("loss_mode", "vanilla")
    if not mode.startswith(PREFIX):
        return
    for part, names, prefix in ((config, REPLACED, "actor."), (loss, REPLACED_LOSS, "actor.policy_loss.")):
        kind = ActorConfig if part is config else VerlPolicyLossConfig
        defaults = {f.name: f.default for f in dataclasses.fields(kind)}
        for name, instead in names.items():
            if part.get(name, defaults[name]) != defaults[name]:
                raise ValueError(f"the controller replaces {prefix}{name}: {instead}")
    controller = Settings.of(mode.removeprefix(PREFIX), loss).build()
    missing = set()
    if config.use_fused_kernels or not config.strategy.startswith("fsdp"):
        missing |= set(FROM_LOGITS)
    if not config.use_kl_loss:
        missing.add("ref_logp")
    require_fields(controller, AVAILABLE - missing, "verl with these settings", HINTS)
    if "ref_logp" in controller.needs and config.kl_loss_coef:
        raise ValueError(f"controller {controller.name!r} replaces verl's KL term: set actor.kl_loss_coef=0")
