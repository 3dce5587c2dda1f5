"""Rules of a run, controller and advantage; a user's own are called once on a few tokens before a model is loaded."""

from dataclasses import replace
from typing import Any

import torch

from entrostat import Chain, StepStats, Tokens, get_advantage, make
from entrostat.about.gradients import gradient
from entrostat.advantages import advantage_uses
from entrostat.by_name import with_target
from entrostat.sample_batch import ragged_batch

from ..settings.config import TrainConfig
from ..verifiers.own_error import told
from .advantages import of_tokens

ON_REQUEST = ("ref_logp", "proxy_logp", "truncated_entropy")
"""Fields of tokens that a run has only if the controller needs them."""


def make_controller(config: TrainConfig) -> Chain:
    """Return the controller of a run. Raises ValueError on an unknown name or hyperparameter, or an unused target."""
    settings = dict(config.controller_args)
    if config.target is not None:
        settings = with_target(config.controller, settings, config.target)
    return make(config.controller, config.controller_preset, **settings)


def keeps_groups(config: TrainConfig) -> bool:
    """Return True if all responses to a prompt must be trained on one rank."""
    looks_across = of_tokens(config.advantage) or config.optim.layout == "shared"
    return looks_across or "group_id" in make_controller(config).needs


def check_resets(config: TrainConfig) -> None:
    """Raise ValueError if a reset of the reference policy is asked for that cannot be, or on which nothing depends."""
    periods = {part.name: int(part.reset_every) for part in make_controller(config).parts}
    asked = next((f"{name}.reset_every {every}" for name, every in periods.items() if every), "")
    if asked and config.engine.name == "deepspeed" and config.engine.zero_stage == 3:
        raise ValueError(f"{asked} needs engine.zero_stage 2 or lower, with whole weights on every rank to copy; got 3")
    if asked and config.advantage == "prime":
        raise ValueError(f"{asked} would change the rewards of advantage prime, which have the same reference: use 0")
    if config.optim.reset_with_reference and not asked:
        raise ValueError("optim.reset_with_reference needs a reset of the reference: set reset_every, as of kl_ref")


def check_rules(config: TrainConfig) -> None:
    """Raise ValueError if a rule is unknown; with its last frame, if one of the user's own raises on a few tokens."""
    controller, name = make_controller(config), config.advantage
    advantage = try_controller if name == "prime" else get_advantage(name)
    for kind, spec, call, rules in (
        ("controller", config.controller, try_controller, map(type, controller.parts)),
        ("advantage", name, try_advantage, [getattr(advantage, "func", advantage)]),
    ):
        if all(rule.__module__.startswith(("entrostat.", "llmtrain.")) for rule in rules):
            continue
        try:
            call(config)
        except Exception as error:
            raise ValueError(f"{kind} {spec!r} fails on a few tokens: {told(error, call).line}") from error


def check_temperature_loop(config: TrainConfig) -> None:
    """Raise ValueError if settings do not suit a controller that sets the sampling temperature."""
    if make_controller(config).temperature is None:
        return
    rollout, name = config.rollout, config.controller
    if rollout.temperature != 1:
        raise ValueError(f"controller {name!r} sets the sampling temperature: leave rollout.temperature at 1")
    wrong = {
        "rollout.train_at_one": rollout.train_at_one,
        "rollout.partial_tokens": rollout.partial_tokens,
        "topology.staleness": config.topology.staleness,
    }
    if asked := [key for key, value in wrong.items() if value]:
        raise ValueError(f"controller {name!r} sets the sampling temperature of each step: leave out {asked[0]}")


def try_controller(config: TrainConfig) -> None:
    """Let the controller observe, plan and tell its metrics, with the fields that it would get in a run."""
    controller, batch = make_controller(config), ragged_batch(0)
    known = {name for name in vars(batch.tokens) if name not in ON_REQUEST} | controller.needs
    given: dict[str, Any] = {name: x if name in known else None for name, x in vars(batch.tokens).items()}
    few = replace(batch, tokens=Tokens(**given))
    controller.observe(StepStats(entropy=0.5, step=0, total_steps=config.steps, epoch=0, epochs=1, planned={}))
    gradient(controller, few, torch.arange(batch.tokens.size))
    for value in controller.metrics().values():
        float(value)


def try_advantage(config: TrainConfig) -> None:
    """Ask for the advantages of two groups of four responses."""
    reward, group = torch.tensor([0.0, 1.0, 1.0, 0.0] * 2), torch.arange(2).repeat_interleave(4)
    wanted = {"length": torch.arange(1, 9)} if "length" in advantage_uses(config.advantage) else {}
    get_advantage(config.advantage)(reward, group, **wanted)
