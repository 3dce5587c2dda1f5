"""Options of TRL's GRPOConfig that are translated into hyperparameters, and those that the controller replaces."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from trl import GRPOConfig

from ..by_name import names_of

REPLACED = {
    "loss_type": "name its surrogate in the controller",
    "epsilon": "set eps_low and eps_high of the controller",
    "epsilon_high": "set eps_high of the controller",
    "delta": "set dual_clip of the controller",
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

AGGREGATION = {"bnpo": "token-mean", "grpo": "seq-mean-token-mean", "dr_grpo": "fixed"}
"""Average over tokens that a loss type of GRPOConfig stands for; their surrogate is the controller's."""


def check_replaced(config: GRPOConfig, translated: Mapping[str, Any]) -> None:
    """Raise ValueError on an option that the controller replaces, unless it is one of `loss_type_settings`."""
    defaults = {field.name: field.default for field in dataclasses.fields(GRPOConfig)}
    known = {"loss_type"} if translated else set()
    if "cispo.eps_high" in translated:
        known.add("epsilon_high")
    for name, instead in REPLACED.items():
        if getattr(config, name) != defaults[name] and name not in known:
            raise ValueError(f"the controller replaces GRPOConfig.{name}: {instead}")


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
