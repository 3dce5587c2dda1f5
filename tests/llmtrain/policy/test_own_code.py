"""Model folders that bring Python code: never run and never asked about unless the configuration trusts them."""

import json

import pytest

from llmtrain.policy.model import build_tiny, load, save
from llmtrain.policy.tokenizer import build_char_tokenizer, load_tokenizer
from llmtrain.rollout.hf_engine import CopyEngine
from llmtrain.settings.config import ModelConfig, RolloutConfig, TrainConfig
from llmtrain.training.telemetry import WatchedRunLog

CODE = """from pathlib import Path
from transformers import Qwen2Config, Qwen2ForCausalLM
(Path({folder!r}) / "was-run").touch()
class OwnConfig(Qwen2Config):
    model_type = "own"
class OwnModel(Qwen2ForCausalLM):
    config_class = OwnConfig
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model folder whose classes are in its own file; questions on standard input would be answered with yes."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder, tokenizer = tmp_path / "model", build_char_tokenizer("0123")
    save(build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16), tokenizer, folder)
    (folder / "own.py").write_text(CODE.format(folder=str(folder)))
    config = json.loads((folder / "config.json").read_text())
    auto_map = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "own", "auto_map": auto_map}))
    return folder


def start_copy(folder):
    return CopyEngine(folder, RolloutConfig())


def start_vllm(folder):
    pytest.importorskip("vllm")
    from llmtrain.rollout.vllm.vllm_engine import VLLMEngine

    return VLLMEngine(folder, RolloutConfig(name="vllm"), [1])


@pytest.mark.parametrize("start", [load, start_copy, pytest.param(start_vllm, marks=pytest.mark.slow)])
def test_code_of_a_folder_is_refused_in_one_line(folder, start):
    with pytest.raises(
        ValueError, match=r"^model folder .* needs its own Python code .*model.trust_remote_code.*$"
    ) as e:
        start(folder)
    assert "\n" not in str(e.value)
    assert not (folder / "was-run").exists()


def test_a_tokenizer_of_its_own_is_refused_too(folder):
    config = json.loads((folder / "tokenizer_config.json").read_text())
    own = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.OwnConfig", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config | own))
    with pytest.raises(ValueError, match=r"^model folder .* needs its own Python code"):
        load_tokenizer(folder)
    assert not (folder / "was-run").exists()


def test_code_of_a_model_that_transformers_knows_is_not_needed(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "qwen2"}))
    model, _ = load(folder)
    assert type(model).__module__.startswith("transformers.")
    assert not (folder / "was-run").exists()


def test_trusted_code_runs(folder):
    model, _ = load(folder, trust_remote_code=True)
    assert type(model).__name__ == "OwnModel"
    assert (folder / "was-run").exists()


@pytest.mark.parametrize("trusted", [False, True])
def test_the_manifest_records_trust(tmp_path, trusted):
    WatchedRunLog(TrainConfig(out=str(tmp_path), model=ModelConfig(trust_remote_code=trusted)), None).close()
    assert json.loads((tmp_path / "manifest.json").read_text()).get("trust_remote_code", False) == trusted
