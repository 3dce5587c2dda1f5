"""Inputs from outside, one folder each: tests/corpus/<kind>/<case>, with what is right in its case.yaml.

    issue: owner/repository#123       where people met it, or the page that describes the format
    about: what goes wrong elsewhere, in a line
    right: what comes out here, or
    refused: a regular expression of the one line that says why not

Adding a case is adding a folder. Each kind is a function below, which says what files and keys its cases have.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from entrostat.logs.foreign.foreign_runs import read_path
from llmtrain.cli import main as llmtrain
from llmtrain.data.prompts import encode_all
from llmtrain.policy.logits import still
from llmtrain.policy.model import build_tiny, load, save
from llmtrain.policy.policy import Policy
from llmtrain.policy.tokenizer import build_bpe_tokenizer, build_char_tokenizer
from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.rollout.rollout_engine import Request, RolloutError
from llmtrain.sequences.batch import Batch
from llmtrain.settings.config import DataConfig, RolloutConfig
from llmtrain.tasks.questions import question_task
from toybandit.cli import main as toybandit

CORPUS = Path(__file__).parents[1] / "corpus"
ALPHABET = "0123456789+-=() "


def models(folder: Path, case: dict[str, Any], place: Path) -> list[str]:
    """config.json describes a small model, which gets random weights. Right: the layouts that it is right in.

    Log-probabilities and entropies of the policy are compared with those of the model's own logits. `attention`: name
    of the attention that computes these, if the family's default leaves something out.
    """
    config = AutoConfig.for_model(**json.loads((folder / "config.json").read_text()))
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0) if weight.dim() > 1 else weight.add_(torch.randn_like(weight), alpha=0.05)
    parts, starts = [torch.arange(3, 33), torch.tensor([3, 4, 5, 6, 8, 7]), torch.arange(9, 31)], [4, 4, 3]
    lengths = torch.tensor([len(part) for part in parts])
    batch = Batch(torch.cat(parts), torch.tensor(starts), lengths - torch.tensor(starts))
    logp, entropy, default = [], [], model.config._attn_implementation
    model.set_attn_implementation(case.get("attention", default))
    with still(model):
        for part, start in zip(parts, starts, strict=True):
            row = model(input_ids=part[None], use_cache=False).logits[0, start - 1 : -1].log_softmax(-1)
            logp.append(row.gather(1, part[start:, None])[:, 0])
            entropy.append(-(row.exp() * row).sum(-1))
    model.set_attn_implementation(default)
    right = []
    for layout in ("padded", "packed", "shared"):
        try:
            stats = Policy(model, layout=layout).all_stats(batch, 1000)
        except ValueError:
            if layout == "padded":
                raise
            continue
        torch.testing.assert_close(stats.logp, torch.cat(logp), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(stats.entropy, torch.cat(entropy), atol=1e-4, rtol=1e-4)
        right.append(layout)
    return right


def exactness(folder: Path, case: dict[str, Any], place: Path) -> bool:
    """config.json as in `models`. Right: whether statistics of sampling may stand for a pass in training.

    They may not if passes of the bare model in training differ with the random numbers.
    """
    torch.manual_seed(0)
    config = AutoConfig.for_model(**json.loads((folder / "config.json").read_text()))
    model, passes = AutoModelForCausalLM.from_config(config, dtype=torch.float32).train(), []
    for seed in range(60):
        torch.manual_seed(seed)
        with torch.no_grad():
            passes.append(model(torch.arange(3, 43)[None], use_cache=False).logits)
    assert all(torch.equal(passes[0], other) for other in passes) == case["right"]
    return HFEngine(model, build_char_tokenizer(ALPHABET), RolloutConfig()).tells_statistics


def sampling(folder: Path, case: dict[str, Any], place: Path) -> str:
    """config.json as in `models`; `tokens`: longest response to prompts of 2, 30, 7 and 18 tokens. Right: the way.

    Log-probabilities of sampled tokens are compared with those of plain passes by the family's own attention.
    """
    config, tokenizer = json.loads((folder / "config.json").read_text()), build_char_tokenizer(ALPHABET)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), dtype=torch.float32).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4.0) if weight.dim() > 1 else weight.add_(torch.randn_like(weight), alpha=0.1)
    plain = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(**config), dtype=torch.float32, attn_implementation="eager"
    ).eval()
    plain.load_state_dict(model.state_dict())
    prompts = [torch.arange(3, 3 + length).remainder(16).add(3).tolist() for length in (2, 30, 7, 18)]
    engine = HFEngine(model, tokenizer, RolloutConfig(max_new_tokens=case["tokens"], n=4))
    try:
        found = engine.submit(Request(prompts, engine.config.sampling, [list(range(4))], seed=0))()
    except RolloutError as error:
        raise ValueError(str(error)) from error
    assert found.response_lengths.max() > case["tokens"] // 2
    told = found.logp.split(found.response_lengths.tolist())
    for owner, response, logp in zip(found.prompt_index.tolist(), found.responses(), told, strict=True):
        with still(plain):
            row = plain(torch.tensor([prompts[owner] + response]), use_cache=False).logits[0, len(prompts[owner]) - 1 :]
        own = row[:-1].log_softmax(-1).gather(1, torch.tensor(response)[:, None])[:, 0]
        torch.testing.assert_close(logp, own, atol=1e-4, rtol=1e-4)
    return engine.way


def model_folders(folder: Path, case: dict[str, Any], place: Path) -> str:
    """change: what is done to the folder of a small Qwen2. Right: `loads`.

    `remove`, `nan` and `double` name weights, `put` gives the text or JSON of files, `delete` names files.
    """
    tokenizer = build_char_tokenizer(ALPHABET)
    model = build_tiny(len(tokenizer), hidden=32, layers=2, heads=2, kv_heads=2, intermediate=32)
    save(model, tokenizer, place / "model")
    change, file = case["change"], place / "model" / "model.safetensors"
    weights = load_file(file)
    for name in change.get("remove", []):
        del weights[name]
    for name in change.get("nan", []):
        weights[name].view(-1)[-1] = torch.nan
    for name in change.get("double", []):
        weights[name] = torch.cat([weights[name]] * 2)
    save_file(weights, file, {"format": "pt"})
    for name, text in change.get("put", {}).items():
        known = json.loads((place / "model" / name).read_text()) if isinstance(text, dict) else {}
        (place / "model" / name).write_text(json.dumps(known | text) if isinstance(text, dict) else text)
    for name in change.get("delete", []):
        (place / "model" / name).unlink()
    save(*load(place / "model"), place / "again")  # as a checkpoint of a run
    return "loads"


def data(folder: Path, case: dict[str, Any], place: Path) -> list[Any]:
    """One file of questions; `settings`: keys of `data`. Right: prompt and ground truth of each question."""
    (file,) = (path for path in folder.iterdir() if path.name != "case.yaml")
    task = question_task(DataConfig(train_files=(str(file),), **case.get("settings", {})), False)
    return [
        [question.prompt if isinstance(question.prompt, str) else list(question.prompt), question.ground_truth]
        for question in task.train[0]
    ]


def answers_to_data(folder: Path, case: dict[str, Any], place: Path) -> list[bool]:
    """As `data`, with `responses` to the first question. Right: whether each is correct."""
    (file,) = (path for path in folder.iterdir() if path.name != "case.yaml")
    task = question_task(DataConfig(train_files=(str(file),), **case.get("settings", {})), False)
    try:
        return [
            verdict.correct for verdict in task.verify([task.train[0][0]] * len(case["responses"]), case["responses"])
        ]
    finally:
        task.close()


def templates(folder: Path, case: dict[str, Any], place: Path) -> str:
    """template.jinja and `messages`, of a tokenizer whose `special` tokens are given. Right: the prompt as text."""
    texts = [json.dumps(case), (folder / "template.jinja").read_text()]
    tokenizer = build_bpe_tokenizer(texts, 400)
    tokenizer.add_special_tokens(case.get("special", {}))
    tokenizer.chat_template = texts[1]
    (ids,) = encode_all(tokenizer, [tuple(case["messages"])])
    return tokenizer.decode(ids)


def functions(folder: Path, case: dict[str, Any], place: Path) -> list[Any]:
    """own.py; `settings` of `data` and `reward` name its functions as own:name, `rows` are questions.

    Right: [correct, score] of each of `responses` to the first one, after the trial before a run.
    """
    from llmtrain.settings.config import RewardConfig, TrainConfig
    from llmtrain.tasks import get_task

    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in case["rows"]))
    settings = case.get("settings", {})
    questions = DataConfig(train_files=(str(place / "rows.jsonl"),), **settings.get("data", {}))
    config = TrainConfig(data=questions, reward=RewardConfig(**settings.get("reward", {})))
    task = get_task(config)
    try:
        n = len(case["responses"])
        task.try_out(n)
        correct = [verdict.correct for verdict in task.verify([task.train[0][0]] * n, case["responses"])]
        scores = task.score([task.train[0][0]], [case["responses"]])[0] if task.reward else [None] * n
        return [list(pair) for pair in zip(correct, scores, strict=True)]
    finally:
        task.close()


def logs(folder: Path, case: dict[str, Any], place: Path) -> Any:
    """One log of another trainer. Right: the values of `metrics` at each step, null where a step has none.

    Of several runs, those of each by its name.
    """
    (file,) = (path for path in folder.iterdir() if path.name != "case.yaml")
    found = {
        run.name: [[line.get(name) for name in case["metrics"]] for line in run.metrics] for run in read_path(file)
    }
    return found if len(found) > 1 else found[""]


KINDS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (models, exactness, sampling, model_folders, data, answers_to_data, templates, functions, logs)
}


SAMPLED = {"functions": 10, "answers_to_data": 10, "models": 4}
"""Kinds whose cases take long, and one in how many the quick tests run."""


PROGRAMS = {"llmtrain": llmtrain, "toybandit": toybandit}


def cases(*kinds: str) -> list[Any]:
    return [
        pytest.param(folder, id=f"{kind}/{folder.name}", marks=[pytest.mark.slow] * (number % SAMPLED.get(kind, 1) > 0))
        for kind in kinds
        for number, folder in enumerate(sorted(path.parent for path in (CORPUS / kind).glob("*/case.yaml")))
    ]


def read(folder: Path) -> dict[str, Any]:
    case = yaml.safe_load((folder / "case.yaml").read_text())
    assert case["issue"], "a case names where people met it"
    assert case["about"]
    assert ("right" in case) != ("refused" in case)
    return case


@pytest.mark.parametrize("folder", cases(*KINDS))
def test_an_input_from_outside_is_right_or_refused(folder, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "own", raising=False)
    case, call = read(folder), KINDS[folder.parent.name]
    if "right" in case:
        assert call(folder, case, tmp_path) == case["right"]
        return
    with pytest.raises(ValueError, match=case["refused"]) as found:
        call(folder, case, tmp_path)
    assert len(str(found.value).splitlines()) == 1


@pytest.mark.parametrize("folder", cases("commands"))
def test_a_command(folder, tmp_path, monkeypatch, capsys):
    """`command`: what is typed after llmtrain, or another `program`, in a copy of the folder. Right: what it prints."""
    case = read(folder)
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    for name, value in case.get("environment", {}).items():
        monkeypatch.setenv(name, value)
    code = PROGRAMS[case.get("program", "llmtrain")](case["command"])
    said = capsys.readouterr()
    if "right" in case:
        assert code == 0
        assert re.search(case["right"], said.out)
    else:
        assert code != 0
        assert re.search(case["refused"], said.err)
        assert "Traceback" not in said.err
        assert len(said.err.strip().splitlines()) <= case.get("lines", 1)


def test_there_are_forty_cases():
    assert len(cases(*KINDS, "commands")) >= 40
