"""Options of TRL's GRPOConfig that are translated into hyperparameters, and those that the controller replaces."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from trl import GRPOConfig

from ..by_name import make, names_of
from ..chaining import Chain
from ..numbers.per_run import as_state
from ..surrogates.ratio_clip import PPO
from ..surrogates.sequence import GSPO

REPLACED = {
    "loss_type": "name its surrogate in the controller",
    "epsilon": "set eps_low and eps_high of the controller",
    "epsilon_high": "set eps_high of the controller",
    "delta": "set dual_clip of its surrogate",
    "importance_sampling_level": "name a sequence-level surrogate in the controller",
    "top_entropy_quantile": "name a controller that keeps tokens by entropy",
    "entropy_coef": "add entropy_bonus to the controller",
    "use_adaptive_entropy": "add adaptive_entropy to the controller",
    **dict.fromkeys(
        ("entropy_coef_min", "entropy_coef_max", "entropy_coef_delta", "entropy_target"),
        "set coef_min, coef_max, delta and target of adaptive_entropy",
    ),
    "sapo_temperature_pos": "set tau_positive of sapo",
    "sapo_temperature_neg": "set tau_negative of sapo",
    **dict.fromkeys(("vespo_k_pos", "vespo_k_neg"), "set k_positive and k_negative of vespo"),
    **dict.fromkeys(("vespo_lambda_pos", "vespo_lambda_neg"), "set lambda_positive and lambda_negative of vespo"),
    "off_policy_mask_threshold": "add opsm to the controller and set its delta",
}
"""Options of GRPOConfig that the controller replaces, each with the setting to use instead."""

AGGREGATION = {
    "bnpo": "token-mean",
    "grpo": "seq-mean-token-mean",
    "dr_grpo": "fixed",
    "luspo": "seq-mean-token-sum",
}
"""Average over tokens that a loss type of GRPOConfig stands for; their surrogate is the controller's."""


def check_replaced(config: GRPOConfig, translated: Mapping[str, Any], controller: Chain) -> None:
    """Raise ValueError on an option that the controller replaces, unless it is translated or says the same.

    translated: what `loss_type_settings` and `delta_settings` returned.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(GRPOConfig)}
    stands_for = {
        "loss_type": ("aggregation", "cispo.eps_high"),
        "epsilon_high": ("cispo.eps_high",),
        "delta": (f"{controller.surrogate.name}.dual_clip",),
    }
    known = {name for name, keys in stands_for.items() if not translated.keys().isdisjoint(keys)}
    if isinstance(controller.surrogate, GSPO):
        known.add("importance_sampling_level")
    for name, instead in REPLACED.items():
        if getattr(config, name) != defaults[name] and name not in known:
            raise ValueError(f"the controller replaces GRPOConfig.{name}: {instead}")


def check_resets(controller: Chain, updates: int) -> None:
    """Raise ValueError if a controller resets the reference policy: TRL does that by options of its own.

    updates: optimizer steps per rollout.
    """
    for part in controller.parts:
        if every := int(as_state(part.reset_every).max()):
            raise ValueError(
                f"{part.name}: TRL resets the reference itself: leave reset_every 0, and set GRPOConfig.sync_ref_model "
                f"to True, ref_model_mixup_alpha to 1.0 and ref_model_sync_steps to {every * updates}"
            )


def delta_settings(config: GRPOConfig | None, controller: str, preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `dual_clip` that GRPOConfig's delta stands for; empty without one, and if `check_replaced` refuses it.

    TRL bounds the ratio by delta, for either sign of A, before it takes the smaller of the two objectives. From
    1 + eps_high on this is a dual clip. Below, it bounds the ratio where A > 0 instead, and 1 + eps_high where A < 0.
    given: hyperparameters set beside it. Raises ValueError if they set dual_clip too, on a delta below 1 + eps_high,
    with the settings to use, and if the surrogate has no such bound.
    """
    if config is None or config.delta is None:
        return {}
    for key in given:
        if key.rpartition(".")[2] == "dual_clip":
            raise ValueError(f"GRPOConfig.delta decides dual_clip: drop {key}")
    surrogate = make(controller, preset, **given).surrogate
    if not hasattr(surrogate, "dual_clip"):
        raise ValueError(f"surrogate {surrogate.name!r} has no bound that GRPOConfig.delta could set: leave it None")
    if not isinstance(surrogate, PPO | GSPO) or "eps_high" in surrogate.schedules:
        return {}
    delta, eps_high = config.delta, float(surrogate.eps_high)
    if not delta > 1:
        raise ValueError(f"GRPOConfig.delta bounds a ratio that begins at 1: it must be above 1; got {delta}")
    if delta < 1 + eps_high:
        raise ValueError(
            f"GRPOConfig.delta {delta} is below 1 + eps_high: instead set eps_high={delta - 1:g} and "
            f"dual_clip={1 + eps_high:g} of {surrogate.name}, which is TRL's loss"
        )
    return {f"{surrogate.name}.dual_clip": delta}


def loss_type_settings(config: GRPOConfig | None, controller: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hyperparameters that GRPOConfig's loss_type stands for, and epsilon_high if that is "cispo".

    Empty for the default, "dapo", and for a loss type that is another surrogate than the controller's. given:
    hyperparameters set beside it. Raises ValueError if they set the aggregation too, and if epsilon_high is not set for
    "cispo": TRL would then cap the ratio at epsilon.
    """
    if config is None:
        return {}
    if config.loss_type == "cispo" and "cispo" in names_of(controller):
        if config.epsilon_high is None:
            raise ValueError('loss_type "cispo" caps the ratio at GRPOConfig.epsilon_high: set it, as to 5.0')
        return {"cispo.eps_high": config.epsilon_high - 1}
    if config.loss_type not in AGGREGATION:
        return {}
    found: dict[str, Any] = {"aggregation": AGGREGATION[config.loss_type]}
    if found["aggregation"] == "fixed":  # the largest number of tokens of an optimizer step
        rows = config.per_device_train_batch_size * config.gradient_accumulation_steps * config.world_size
        assert config.max_completion_length is not None  # as in TRL's own loss
        found["constant"] = float(rows * config.max_completion_length)
    for key in given:
        if key.rpartition(".")[2] in found:
            raise ValueError(f'GRPOConfig.loss_type "{config.loss_type}" decides the aggregation: drop {key}')
    return found
