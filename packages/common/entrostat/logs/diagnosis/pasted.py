"""Settings of a controller to paste, for TRL, verl and llmtrain. docs/trl.md and docs/verl.md explain them."""

import json
from collections.abc import Mapping
from typing import Any

from ...by_name import make

POLICY_LOSS = "actor_rollout_ref.actor.policy_loss"


def pasted(controller: str, args: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of a controller by trainer. Raises ValueError if there is no such controller or setting."""
    needs_reference = "ref_logp" in make(controller, **args).needs
    return {
        "TRL": trl(controller, args, needs_reference),
        "verl": verl(controller, args, needs_reference),
        "llmtrain": llmtrain(controller, args),
    }


def trl(controller: str, args: Mapping[str, Any], needs_reference: bool) -> str:
    """Return lines of Python; `model`, `reward` and `data` are the user's."""
    beta = ", beta=0.001" if needs_reference else ""
    loop = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in args.items())
    told = "  # beta only makes TRL load the reference policy" if needs_reference else ""
    return "\n".join(
        [
            "from trl import GRPOConfig",
            "from entrostat.integrations.trl import EntrostatGRPOTrainer",
            "",
            f'args = GRPOConfig("runs/controlled"{beta}){told}',
            f'settings = {{"controller": "{controller}", "controller_args": {{{loop}}}}}',
            "trainer = EntrostatGRPOTrainer(model, reward, args, data, **settings)",
        ]
    )


def verl(controller: str, args: Mapping[str, Any], needs_reference: bool) -> str:
    """Return an environment variable and flags of `python -m verl.trainer.main_ppo`."""
    flags = [
        f"{POLICY_LOSS}._target_=entrostat.integrations.verl.PolicyLossConfig",
        f"{POLICY_LOSS}.loss_mode=entrostat/{controller}",
        *(f"+{POLICY_LOSS}.controller_args.{key}={value}" for key, value in args.items()),
    ]
    if needs_reference:  # verl's own term stays off
        flags += ["actor_rollout_ref.actor.use_kl_loss=True", "actor_rollout_ref.actor.kl_loss_coef=0"]
    lines = ["export VERL_USE_EXTERNAL_MODULES=entrostat.integrations.verl", "python -m verl.trainer.main_ppo"]
    return "\n".join([lines[0], " \\\n    ".join([lines[1], *flags])])


def llmtrain(controller: str, args: Mapping[str, Any]) -> str:
    """Return flags of `llmtrain train`."""
    return " ".join(["llmtrain train", f"--controller {controller}", *(f"--set {k}={v}" for k, v in args.items())])
