"""Model folders that bring Python code: never run and never asked about unless the configuration trusts them."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from entrostat.logs.runlog import read_metrics
from llmtrain.cli import main
from llmtrain.policy.model import build_tiny, load, save
from llmtrain.policy.tokenizer import build_char_tokenizer, load_tokenizer
from llmtrain.rollout.hf_engine import CopyEngine
from llmtrain.settings.config import ModelConfig, RolloutConfig, TrainConfig
from llmtrain.settings.nested import to_dict
from llmtrain.training.telemetry import WatchedRunLog

CODE = """from pathlib import Path
from transformers import Qwen2Config, Qwen2ForCausalLM
(Path({folder!r}) / "was-run").touch()
class OwnConfig(Qwen2Config):
    model_type = "own"
class OwnModel(Qwen2ForCausalLM):
    config_class = OwnConfig
"""


AUTO_MAP = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}


def with_code(folder: Path, **config) -> Path:
    """Give a model folder its own classes, and return it; config: other settings of the model."""
    (folder / "own.py").write_text(CODE.format(folder=str(folder)))
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"model_type": "own", "auto_map": AUTO_MAP} | config))
    return folder


def with_tokenizer_code(folder: Path) -> Path:
    """Give a model folder its own tokenizer class, and return it."""
    (folder / "own.py").write_text(CODE.format(folder=str(folder)))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    own = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.OwnConfig", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config | own))
    return folder


@pytest.fixture(autouse=True)
def asked(tmp_path, monkeypatch):
    """Questions on standard input, which are answered with yes."""
    asked = []
    monkeypatch.setattr("builtins.input", lambda *question: asked.append(question) or "y")
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    return asked


@pytest.fixture
def plain(tmp_path):
    """A model folder without code."""
    tokenizer = build_char_tokenizer("0123")
    model = build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16)
    save(model, tokenizer, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def folder(plain):
    """A model folder whose classes are in its own file."""
    return with_code(plain)


def start_copy(folder):
    return CopyEngine(folder, RolloutConfig())


def start_vllm(folder):
    pytest.importorskip("vllm")
    from llmtrain.rollout.vllm.vllm_engine import VLLMEngine

    return VLLMEngine(folder, RolloutConfig(name="vllm"), [1])


@pytest.mark.parametrize("start", [load, start_copy, pytest.param(start_vllm, marks=pytest.mark.slow)])
def test_code_of_a_folder_is_refused_in_one_line(folder, start, asked):
    with pytest.raises(ValueError, match=r"^[^\n]*own Python code [^\n]*model\.trust_remote_code[^\n]*$"):
        start(folder)
    assert not (folder / "was-run").exists()
    assert not asked


def test_a_tokenizer_of_its_own_is_refused_too(plain, asked):
    folder = with_tokenizer_code(plain)
    with pytest.raises(ValueError, match="own Python code"):
        load_tokenizer(folder)
    assert not (folder / "was-run").exists()
    assert not asked


def test_code_of_a_model_that_transformers_knows_is_not_needed(plain, asked):
    model, _ = load(with_code(plain, model_type="qwen2"))
    assert type(model).__module__.startswith("transformers.")
    assert not (plain / "was-run").exists()
    assert not asked


def test_trusted_code_runs(folder):
    model, _ = load(folder, trust_remote_code=True)
    assert type(model).__name__ == "OwnModel"
    assert (folder / "was-run").exists()


@pytest.mark.parametrize("trusted", [False, True])
def test_the_manifest_records_trust(tmp_path, trusted):
    WatchedRunLog(TrainConfig(out=str(tmp_path), model=ModelConfig(trust_remote_code=trusted)), None).close()
    assert json.loads((tmp_path / "manifest.json").read_text()).get("trust_remote_code", False) == trusted


# Command line ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def train(small, tmp_path):
    """Arguments of a command that trains one step, with these flags."""
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(to_dict(small)))

    def arguments(command: str, *flags: str) -> list[str]:
        return [command, "--config", str(file), "--out", str(tmp_path / "run"), "--steps", "1", *flags]

    return arguments


@pytest.fixture
def copy(small, tmp_path):
    """Function that copies the warmed-up model."""
    return lambda name: Path(shutil.copytree(small.model.path, tmp_path / name))


REFERENCE, PRIME = ("--controller", "kl_ref"), ("--advantage", "prime")
ROLES = {
    "policy": (with_code, ("--model.path",)),
    "tokenizer": (with_tokenizer_code, ("--model.path",)),
    "sampled by vLLM": (with_code, ("--rollout.name", "vllm", "--model.path")),
    "base of LoRA": (with_code, ("--model.lora-rank", "4", "--model.path")),
    "reference": (with_code, (*REFERENCE, "--model.ref-path")),
    "tokenizer of the reference": (with_tokenizer_code, (*REFERENCE, "--model.ref-path")),
    "reference and reward model of PRIME": (with_code, (*PRIME, "--model.ref-path")),
}
"""Models of a run: how a folder gets code for one, and the flags that end with its folder."""


@pytest.mark.parametrize("role", ROLES)
def test_a_command_refuses_the_code_of_any_model(train, copy, asked, role, capsys):
    give, flags = ROLES[role]
    folder = give(copy("own"))
    assert main(train("train", *flags, str(folder))) == 2
    refused(folder, asked, capsys)


@pytest.mark.parametrize("command", ["sft", "eval", "eval --start"])
def test_other_commands_refuse_it_too(train, copy, asked, command, capsys):
    folder, plain = with_code(copy("own")), copy("plain")
    args = {
        "sft": train("sft", "--model.path", str(folder)),
        "eval": ["eval", str(folder)],
        "eval --start": ["eval", str(plain), "--start", str(with_tokenizer_code(folder))],
    }
    assert main(args[command]) == 2
    refused(folder, asked, capsys)


def refused(folder, asked, capsys) -> None:
    """Assert that a command has refused the code of a folder in one line."""
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: model folder {folder} needs its own Python code (auto_map), which is not run: ")
    assert "model.trust_remote_code" in line
    assert not (folder / "was-run").exists()
    assert not asked


@pytest.mark.slow
@pytest.mark.parametrize("flags", [REFERENCE, PRIME])
def test_a_command_runs_code_that_it_may_trust_and_records_that(train, copy, asked, flags, tmp_path, capsys):
    """It runs for the policy and the other models; a checkpoint has the code with it, and the run goes on."""
    policy, other = with_code(copy("own")), with_code(copy("other"))
    given = ["--model.path", str(policy), "--model.ref-path", str(other), "--model.trust-remote-code"]
    assert main(train("train", *flags, *given)) == 0
    run = tmp_path / "run"
    assert json.loads((run / "manifest.json").read_text())["trust_remote_code"] is True
    assert all((folder / "was-run").exists() for folder in (policy, other))
    capsys.readouterr()
    for command in (["resume", str(run), "--steps", "2"], ["eval", str(run)]):  # what its config.yaml says is no trust
        assert main(command) == 2
        assert "needs its own Python code (auto_map), which is not run" in capsys.readouterr().err
    assert main(["resume", str(run), "--steps", "2", "--trust-remote-code"]) == 0
    assert [line["step"] for line in read_metrics(run)][:2] == [0, 1]
    assert not asked
