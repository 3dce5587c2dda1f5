"""Presets by name, and command lines that override them."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from entrostat.settings.choosing import unknown
from entrostat.settings.commandline import Arguments, parse_flags, parse_settings
from entrostat.settings.field_types import merge
from entrostat.settings.plain_yaml import load_yaml

from .config import (
    EngineConfig,
    EvalConfig,
    ModelConfig,
    OptimConfig,
    RolloutConfig,
    SFTConfig,
    TaskConfig,
    TopologyConfig,
    TrainConfig,
)
from .renamed import current_flags, current_keys, print_renamed

_NAMES = {
    "rollout.n": "num_generations group_size n_samples_per_prompt num_samples_per_prompt samples_per_prompt rollout_n",
    "rollout.prompts": "batch_size train_batch_size rollout_batch_size per_device_train_batch_size",
    "rollout.max_new_tokens": "max_completion_length max_response_length response_length max_tokens",
    "rollout.temperature": "sampling_temperature temperature",
    "optim.mini_batch_size": "ppo_mini_batch_size mini_batch_size",
    "optim.micro_batch_tokens": "ppo_micro_batch_size micro_batch_size micro_train_batch_size",
    "optim.lr": "learning_rate actor_lr actor_learning_rate lr",
    "optim.max_grad_norm": "grad_clip clip_grad gradient_clipping max_norm",
    "data.max_prompt_length": "max_prompt_len prompt_max_len max_prompt_length",
    "data.train_files": "dataset dataset_name dataset_path train_data prompt_data train_file",
    "model.path": "model model_name model_name_or_path pretrain model_path",
    "model.lora_rank": "lora_r lora_rank",
    "reward.function": "reward_fn reward_func reward_funcs reward_function custom_reward_function",
    "steps": "max_steps total_steps num_steps total_training_steps num_episodes",
    "save_every": "save_steps save_freq save_interval",
    "eval.every": "eval_steps test_freq eval_interval",
    "out": "output_dir save_path default_local_dir",
    "nproc": "n_gpus num_gpus nproc_per_node n_gpus_per_node",
    "log.wandb": "report_to use_wandb",
    "controller kl_ref with --set beta=0.05": "kl_coef kl_beta beta kl_loss_coef init_kl_coef use_kl_loss",
    "controller entropy_bonus with --set coef=0.01": "entropy_coef entropy_coeff ent_coef entropy_loss_coef",
    "controller clip_higher with --set eps_high=0.28": "clip_ratio_high epsilon_high clip_eps_high",
    "controller ppo with --set eps_high=0.2": "clip_ratio clip_range eps_clip epsilon cliprange",
}


def _pairs() -> Iterator[tuple[str, str]]:
    for ours, theirs in _NAMES.items():
        for name in theirs.split():
            yield name, ours


SYNONYMS = dict(_pairs())
"""Our key by the last part of a name."""


SMOLLM = TrainConfig(
    out="runs/smollm",
    model=ModelConfig(path="models/smollm2-135m"),
    task=TaskConfig(name="arithmetic", train_problems=4096),
    sft=SFTConfig(examples=4096, wrong_share=0, steps=80, batch_size=16, lr=1e-4),
    rollout=RolloutConfig(prompts=8, n=8, max_new_tokens=96),
    optim=OptimConfig(layout="shared", lr=1e-5, mini_batch_size=4),
    eval=EvalConfig(every=25),
)
"""A pretrained model of 135M parameters, which `llmtrain model smollm2-135m` writes."""
TRAIN_EXAMPLE = "llmtrain train --preset countdown-cpu --controller entropic --target 0.4 --set tau=0"
PRESETS: dict[str, TrainConfig] = {
    "math-cpu": TrainConfig(
        out="runs/math",
        model=ModelConfig(max_position_embeddings=1280),
        task=TaskConfig(name="files"),
        sft=SFTConfig(steps=0),
        rollout=RolloutConfig(prompts=8, n=4, max_new_tokens=64),
        optim=OptimConfig(layout="shared", mini_batch_size=4),
        eval=EvalConfig(every=0),
    ),
    "countdown-cpu": TrainConfig(out="runs/countdown", optim=OptimConfig(layout="shared")),
    "countdown-ray": TrainConfig(
        out="runs/countdown-ray",
        nproc=2,
        engine=EngineConfig(name="deepspeed", zero_stage=2),
        optim=OptimConfig(layout="shared"),
        rollout=RolloutConfig(name="vllm"),
        topology=TopologyConfig(name="ray"),
    ),
    "smollm-cpu": SMOLLM,
    "smollm-ray": replace(
        SMOLLM,
        out="runs/smollm-ray",
        nproc=2,
        engine=EngineConfig(name="deepspeed", zero_stage=2),
        rollout=replace(SMOLLM.rollout, name="vllm"),
        topology=TopologyConfig(name="ray"),
    ),
}


def get_preset(name: str) -> TrainConfig:
    """Return the preset called `name`. Raise ValueError with all names if there is none."""
    if name not in PRESETS:
        raise ValueError(unknown("preset", name, PRESETS))
    return PRESETS[name]


def at_home(settings: Any) -> Any:
    """Return settings with the home folder for the ~ of paths, which no shell has replaced in a file."""
    if isinstance(settings, dict):
        return {key: at_home(value) for key, value in settings.items()}
    if isinstance(settings, list):
        return [at_home(value) for value in settings]
    return str(Path(settings).expanduser()) if isinstance(settings, str) and settings.startswith("~/") else settings


def ours_of(error: ValueError) -> str:
    """Return our name for an unknown key of a file, if another trainer calls a setting so."""
    found = re.search(r"^unknown key '?([\w.]+)", str(error))
    ours = SYNONYMS.get(found[1].rpartition(".")[2]) if found else None
    return f"; here it is {ours}" if ours else ""


def read_config(
    args: list[str], prog: str, example: str = TRAIN_EXAMPLE, out: str | None = None, base: TrainConfig | None = None
) -> TrainConfig:
    """Return the configuration of a command line: defaults < --preset < --config < --set and flags.

    example: shown by --help. out: a default for `out` in place of those of train and of the preset. base: settings of a
    recipe in place of the defaults; a preset cannot be named then.
    """
    first = Arguments(prog=prog, add_help=False)
    first.add_argument("--preset")
    first.add_argument("--config")
    first.add_argument("--set", action="extend", nargs="+", default=[])
    given, rest = first.parse_known_args(args)
    print_renamed(rest)
    if base and given.preset:
        raise ValueError(f"{prog}: --preset {given.preset} and --recipe exclude each other: leave one out")
    config = base or (get_preset(given.preset) if given.preset else TrainConfig())
    config = replace(config, out=out or config.out)
    if given.config:
        settings = load_yaml(given.config)
        if not settings:
            raise ValueError(f"{prog}: {given.config} holds no settings: leave --config out to train without")
        try:
            if isinstance(settings, dict):
                print_renamed(settings)
                settings = at_home(current_keys(settings))
            config = merge(config, settings)
        except ValueError as error:
            raise ValueError(f"{prog}: {given.config}: {error}{ours_of(error)}") from None
    if given.set:
        config = replace(config, controller_args={**config.controller_args, **parse_settings(given.set)})
    description = (
        "Settings: defaults < --preset < --config file.yaml < flags. "
        f"--preset NAME: {', '.join(PRESETS)}. --recipe NAME: a published run, see llmtrain recipes. "
        "--config FILE: YAML with the keys below. "
        "--set KEY=VALUE (any number of times): a hyperparameter of the controllers, such as --set kp=2. "
        f"Example: {example}"
    )
    flags = current_flags(rest)
    return parse_flags(TrainConfig, flags, prog=prog, description=description, default=config, synonyms=SYNONYMS)
