"""llmtrain eval from its arguments to its files."""

import json
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
import yaml
from evaluated import TOKENIZER, small_model
from full_disk import no_file_over

from entrostat.settings.commandline import one_line_errors
from llmtrain.commands.eval import main as evaluate
from llmtrain.data import read
from llmtrain.policy.model import build_tiny, save
from llmtrain.policy.tokenizer import build_bpe_tokenizer
from llmtrain.settings.config import EvalConfig, ModelConfig, RolloutConfig, TaskConfig, TrainConfig
from llmtrain.settings.nested import to_dict

run = one_line_errors(evaluate)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return a model folder whose tokenizer has a chat template."""
    path = tmp_path_factory.mktemp("model") / "tiny"
    tokenizer = build_bpe_tokenizer(["What is 1 + 2? The answer is \\boxed{3}."], 300)
    model = build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16, max_positions=512)
    save(model, tokenizer, path)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "aime24.jsonl"
    rows = [{"question": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(5)]
    rows.append({"question": "and so on " * 200, "answer": "1"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def brief(out):
    return ["--samples", "2", "--max-new-tokens", "4", "--max-prompt-length", "100", "--out", str(out)]


def test_a_model_on_a_file(model, data, tmp_path, capsys):
    out = tmp_path / "out"
    command = [str(model), "--data", str(data), "--start", str(model), "--settings", "steer", *brief(out)]
    assert run(command) == 0
    told = capsys.readouterr()
    assert "aime24: skipped 1 questions" in told.err
    found = json.loads((out / "results.json").read_text())
    (one,) = found["benchmarks"]
    assert (one["source"], one["questions"], one["samples"]) == ("aime24", 5, 2)
    assert (one["sampling"]["temperature"], one["sampling"]["top_p"]) == (1.0, 0.7)
    assert one["prompt_entropy_ratio"] == pytest.approx(1)
    assert found["verifier"] == "math"
    assert len((out / "responses.jsonl").read_text().splitlines()) == 10
    assert (out / "results.md").is_file()
    assert (out / "pass_at_k.png").is_file()


@pytest.mark.slow
def test_the_same_command_goes_on_and_another_one_is_refused(model, data, tmp_path, capsys):
    out = tmp_path / "out"
    command = [str(model), "--data", str(data), "--limit", "4", "--batch-size", "2", *brief(out)]
    assert run(command) == 0
    whole = (out / "responses.jsonl").read_bytes()
    results = (out / "results.json").read_text()
    (out / "responses.jsonl").write_bytes(whole[: len(whole) // 2])
    assert run(command) == 0
    assert (out / "responses.jsonl").read_bytes() == whole
    again = json.loads((out / "results.json").read_text())["benchmarks"]
    assert again == json.loads(results)["benchmarks"]
    capsys.readouterr()
    assert run([*command, "--temperature", "0.5"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'aime24' differs" in line
    assert run([*command, "--dtype", "bfloat16"]) == 2
    assert "'dtype' differs" in capsys.readouterr().err
    assert run([*command, "--temperature", "0.5", "--overwrite"]) == 0
    assert (out / "responses.jsonl").read_bytes() != whole


def test_a_run_is_evaluated_at_its_newest_checkpoint(tmp_path):
    folder = tmp_path / "run"
    for step in (1, 3):
        save(small_model(), TOKENIZER, folder / "checkpoints" / f"step-{step:06d}")
    config = TrainConfig(
        task=TaskConfig(train_problems=16, test_problems=8),
        rollout=RolloutConfig(max_new_tokens=6),
        eval=EvalConfig(k=2, samples=2),
    )
    (folder / "config.yaml").write_text(yaml.safe_dump(to_dict(config)))
    lines = [{"step": i, "entropy": 1 - i / 10, "eval/avg@2": i / 10} for i in range(4)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run([str(folder)]) == 0
    out = folder / "eval" / "step-000003"
    found = json.loads((out / "results.json").read_text())
    assert found["model"].endswith("step-000003")
    assert found["verifier"] == "countdown"
    (one,) = found["benchmarks"]
    assert (one["source"], one["questions"], one["samples"]) == ("countdown", 8, 2)
    assert found["correlations"] == [{"source": "", "score": "avg@2", "points": 4, "spearman": pytest.approx(-1)}]


def test_a_run_whose_steps_have_no_entropy_has_nothing_to_compare_it_with(tmp_path):
    folder = tmp_path / "run"
    save(small_model(), TOKENIZER, folder / "checkpoints/step-000002")
    config = TrainConfig(
        task=TaskConfig(train_problems=16, test_problems=4),
        rollout=RolloutConfig(max_new_tokens=2),
        eval=EvalConfig(k=1, samples=1),
    )
    (folder / "config.yaml").write_text(yaml.safe_dump(to_dict(config)))
    lines = [{"step": i, "entropy": None, "eval/avg@1": i / 10} for i in range(2)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run([str(folder)]) == 0
    assert json.loads((folder / "eval/step-000002/results.json").read_text())["correlations"] == []


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ("--temperature -1", "temperature must not be negative"),
        ("--temperature nan", "temperature"),
        ("--top-p 0", "top_p"),
        ("--samples 0", "samples"),
        ("--k 0", "--k"),
        ("--start nowhere", "nowhere/config.json"),
        ("--start {other}", "other has another tokenizer"),
        ("--verifier nobody", "'nobody'"),
        ("--max-prompt-length 2", "no question"),
        ("--device tpu", "'tpu'"),
        ("--data {data} {data}", "aime24.jsonl is given twice"),
    ],
)
def test_mistakes_are_told_in_one_line(model, data, tmp_path, capsys, wrong, names):
    out = tmp_path / "out"
    save(small_model(), TOKENIZER, tmp_path / "other")
    flags = wrong.format(data=data, other=tmp_path / "other").split()
    assert run([str(model), "--data", str(data), *brief(out), *flags]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert names in told[-1]
    assert told[-1].startswith("error: ")
    assert not (out / "responses.jsonl").exists()


@pytest.mark.slow
def test_files_of_one_name_are_two_benchmarks_and_a_seed_may_be_negative(model, data, tmp_path):
    names = []
    for folder, row in (("g", 1), ("h", 2)):
        (tmp_path / folder).mkdir()
        names.append(str(tmp_path / folder / "test.jsonl"))
        (tmp_path / folder / "test.jsonl").write_text(data.read_text().splitlines()[row] + "\n")
    out = tmp_path / "out"
    assert run([str(model), "--data", *names, "--seed", "-1", *brief(out)]) == 0
    found = json.loads((out / "results.json").read_text())["benchmarks"]
    assert [(one["source"], one["questions"]) for one in found] == [("g", 1), ("h", 1)]


@pytest.mark.slow
def test_a_run_stands_for_the_model_it_began_with(model, data, tmp_path, capsys):
    folder = tmp_path / "run"
    folder.mkdir()
    for begun, expected in ((model, 0), (tmp_path / "gone", 2)):
        config = TrainConfig(model=ModelConfig(path=str(begun)))
        (folder / "config.yaml").write_text(yaml.safe_dump(to_dict(config)))
        out = tmp_path / begun.name
        assert run([str(model), "--data", str(data), "--start", str(folder), *brief(out)]) == expected
    assert (
        json.loads((tmp_path / model.name / "results.json").read_text())["benchmarks"][0]["prompt_entropy_ratio"] == 1
    )
    assert f"{tmp_path}/gone/config.json" in capsys.readouterr().err


def test_checks_that_fail_are_counted(model, data, tmp_path, capsys):
    assert run([str(model), "--data", str(data), "--verifier", "operator:truediv", *brief(tmp_path)]) == 0
    assert "count as wrong: 10 error" in capsys.readouterr().err
    assert run([str(model), "--verifier", "exact"]) == 2
    assert "--verifier judges questions from files" in capsys.readouterr().err


def test_what_is_no_model_is_refused(tmp_path, capsys):
    assert run([str(tmp_path)]) == 2
    assert "neither a run" in capsys.readouterr().err


def test_a_run_on_files_without_held_out_ones_needs_data(tmp_path, capsys, model):
    config = to_dict(TrainConfig(steps=1))
    config["data"]["train_files"] = ["train.jsonl"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/step-000001").symlink_to(model)
    assert run([str(tmp_path)]) == 2
    assert "name files with --data" in capsys.readouterr().err


@pytest.mark.slow
def test_real_benchmarks(real, model, tmp_path):
    files = [real(name) for name in ("amc23.parquet", "math500.parquet")]
    assert run([str(model), "--data", *files, "--limit", "3", *brief(tmp_path), "--max-prompt-length", "2000"]) == 0
    found = json.loads((tmp_path / "results.json").read_text())["benchmarks"]
    assert [one["questions"] for one in found] == [3, 3]
    assert len(read(files[0]).questions) == 40


def test_help_needs_neither_torch_nor_transformers():
    heavy = "{'torch', 'transformers', 'numpy', 'matplotlib', 'pyarrow'}"
    code = f"import sys, llmtrain.commands.eval as c; assert not {heavy} & set(sys.modules); c.main(['--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "entropy_mechanism" in done.stdout


def test_two_processes_do_not_evaluate_into_one_folder(model, data, tmp_path, capsys):
    out = tmp_path / "out"
    hold = "import time; from llmtrain.training.run import claim\n"
    hold += f"with claim({str(out)!r}): print(flush=True), time.sleep(99)"
    with subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert run([str(model), "--data", str(data), *brief(out)]) == 2
        other.kill()
    assert f"error: another process evaluates in {out}\n" in capsys.readouterr().err
    assert not (out / "responses.jsonl").exists()


@pytest.mark.long
def test_ctrl_c_ends_all_ranks(model, data, tmp_path):
    out = tmp_path / "out"
    many = ["--samples", "200", "--batch-size", "200", "--nproc", "2"]
    command = [sys.executable, "-m", "llmtrain", "eval", str(model), "--data", str(data), *brief(out), *many]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=heed) as run:
        while not (out / "responses.jsonl").exists() and run.poll() is None:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        try:
            said, _ = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 130, said
    assert f"resume {out}" in said


def test_a_full_disk_takes_a_line(model, data, tmp_path, capsys):
    out = tmp_path / "out"
    with no_file_over(500):
        assert run([str(model), "--data", str(data), *brief(out)]) == 2
    assert f"error: {out}: File too large; " in capsys.readouterr().err
