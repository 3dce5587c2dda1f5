"""Pasted settings are understood by TRL, verl and llmtrain themselves."""

import importlib
import os
import re
import shlex
from pathlib import Path

import pytest

import entrostat as es
from entrostat.logs.diagnosis.advice import advise
from entrostat.logs.diagnosis.facts import measure
from entrostat.logs.diagnosis.pasted import pasted

FALLEN = [{"step": step, "entropy": 1.0 if step < 20 else 0.1} for step in range(40)]
BY_HAND = [("kl_ref", {"beta": 0.05}), ("thermostat", {"mode": "anchor", "target": "0.3x"})]


def pairs():
    """Return every controller and its settings that a rule can give, and some by hand."""
    found = [advise(measure(FALLEN, target=target)) for target in (None, 0.5)]
    return BY_HAND + [(one.rule.controller, one.settings) for some in found for one in some if one.settings]


GIVEN = [(name, pasted(name, of) if (name, of) in BY_HAND else of) for name, of in pairs()]
ONCE = [pytest.param(*case, marks=[pytest.mark.long] * (i >= len(BY_HAND)), id=case[0]) for i, case in enumerate(GIVEN)]
"""Those by hand, which have each controller once; further settings take a training each."""
CASES = pytest.mark.parametrize(("controller", "settings"), GIVEN, ids=[name for name, _ in GIVEN])


def test_rules_give_settings():
    assert {name for name, _ in GIVEN[2:]} == {"kl_ref", "thermostat"}


@CASES
def test_llmtrain_reads_them(controller, settings):
    from llmtrain.settings.presets import read_config

    words = shlex.split(settings["llmtrain"])
    assert words[:2] == ["llmtrain", "train"]
    config = read_config(words[2:], "llmtrain train")
    es.make(config.controller, config.controller_preset, **config.controller_args)
    assert config.controller == controller


@pytest.mark.slow
@CASES
def test_verl_reads_them(controller, settings):
    pytest.importorskip("verl.trainer.ppo.core_algos", reason="pip install --no-deps -c constraints.txt verl")
    from hydra import compose, initialize_config_dir
    from verl.utils.config import omega_conf_to_dataclass

    verl_settings = importlib.import_module("entrostat.integrations.verl_settings")
    importlib.import_module("entrostat.integrations.verl")
    export, command = settings["verl"].split("\n", 1)
    assert export == "export VERL_USE_EXTERNAL_MODULES=entrostat.integrations.verl"
    words = shlex.split(command.replace("\\\n", ""))
    assert words[:3] == ["python", "-m", "verl.trainer.main_ppo"]
    folder = Path(importlib.import_module("verl").__file__).parent / "trainer/config"
    own = ["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8", "actor_rollout_ref.rollout.n=8"]
    with initialize_config_dir(str(folder), version_base=None):
        composed = compose("ppo_trainer", overrides=[*own, *words[3:]])
    config = omega_conf_to_dataclass(composed.actor_rollout_ref.actor)
    verl_settings.check_actor(config)
    assert config.policy_loss.loss_mode == f"entrostat/{controller}"
    assert config.policy_loss.controller_args


@pytest.mark.slow
@pytest.mark.parametrize(("controller", "settings"), ONCE)
def test_trl_trains_with_them(controller, settings, tmp_path):
    pytest.importorskip("trl")
    os.environ["HF_HUB_OFFLINE"] = "1"
    from datasets import Dataset
    from tiny_trl import even_digits

    from llmtrain.policy.model import build_tiny, save
    from llmtrain.policy.tokenizer import build_char_tokenizer

    tokenizer = build_char_tokenizer("0123456789+")
    save(
        build_tiny(len(tokenizer), hidden=32, layers=2, heads=2, kv_heads=2, intermediate=64), tokenizer, tmp_path / "m"
    )
    small = "use_cpu=True, bf16=False, report_to='none', max_steps=1, max_completion_length=8, save_strategy='no'"
    code = re.sub(r'"runs/controlled"', f'"{tmp_path}/out", {small}', settings["TRL"])
    data = Dataset.from_dict({"prompt": [f"{a}+{b}" for a in range(8) for b in range(8)]})
    given = {"model": str(tmp_path / "m"), "reward": even_digits, "data": data}
    exec(code, given)
    given["trainer"].train()
    assert controller in given["trainer"].controller.name
