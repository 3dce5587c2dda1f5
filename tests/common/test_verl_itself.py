"""verl's own worker, versions and loggers beside the drop-in."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import entrostat as es
from entrostat.logs.foreign.foreign_runs import read_path

pytest.importorskip("verl.trainer.ppo.core_algos", reason="pip install --no-deps -c constraints.txt verl")
verl_version = importlib.import_module("entrostat.integrations.verl_version")


@pytest.mark.slow
@pytest.mark.parametrize(
    "responses", [0, pytest.param(8, marks=pytest.mark.long), pytest.param(1, marks=pytest.mark.long)]
)
def test_two_rollouts_of_verls_own_actor_are_the_plans_and_resume(tmp_path, responses):
    """Four optimizer steps of a tiny model, the second of a rollout with ratios other than 1, and a loop that moves.

    In micro-batches of as many tokens as two responses have, which reorders them, in one, and in one of each response.
    Rules compare the tokens of all, and responses with those to the same prompt. The second rollout again, by another
    controller from verl's checkpoint, ends at the same parameters.
    """
    script = Path(__file__).parent / "verl_two_rollouts.py"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-P", str(script), str(tmp_path), str(responses)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["gap"] < 1e-4
    assert found["moved"] > 1e-3
    assert (found["calls"], found["rollouts"]) == (4, 2)
    assert found["coef"] == pytest.approx([0.1, 0.1])
    for metrics in found["metrics"]:
        assert metrics["actor/ppo_kl"] != 0
        assert metrics["actor/pg_clipfrac"] > 0
    assert [m["entrostat/adaptive_entropy/coef"] for m in found["metrics"]] == pytest.approx([0.05, 0.1])
    again = found["again"]
    assert again["state"] == [2, 1, pytest.approx(0.05)]
    assert again["apart"] < 1e-8
    assert again["fresh"] == [0, 0, 0]
    assert "holds no entrostat.pt" in again["said"]
    assert "adaptive_entropy's target=0.4x" in again["refused"]


@pytest.mark.long
def test_verl_loads_the_module_by_its_environment_variable():
    code = (
        "import verl; from verl.trainer.ppo.core_algos import POLICY_LOSS_REGISTRY as r;"
        "print(sum(name.startswith('entrostat/') for name in r))"
    )
    path = os.pathsep.join(sys.path)
    env = os.environ | {"VERL_USE_EXTERNAL_MODULES": "entrostat.integrations.verl", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert int(done.stdout.split()[-1]) == len(es.list_controllers()) + 1


@pytest.mark.parametrize(
    ("found", "said"),
    [("0.10.1", "warns"), ("1.0", "warns"), ("0.8.2", "refuses"), ("0.5.0.dev", "refuses"), ("0.9.3", "")],
)
def test_another_version_of_verl_is_told(found, said):
    if said == "warns":
        with pytest.warns(UserWarning, match=f"written for verl 0.9.x, found {found}"):
            verl_version.check_verl(found)
    elif said == "refuses":
        with pytest.raises(ImportError, match=f"written for verl 0.9.x, found {found}: in an older verl or a fork"):
            verl_version.check_verl(found)
    else:
        verl_version.check_verl(found)


@pytest.mark.slow
def test_an_older_verl_is_told_before_it_is_imported(tmp_path):
    """Its package cannot be imported at all, as with a NumPy that is too new for it."""
    (tmp_path / "verl").mkdir()
    (tmp_path / "verl/__init__.py").write_text("raise AttributeError('np.float_ was removed')")
    (tmp_path / "verl-0.4.1.dist-info").mkdir()
    (tmp_path / "verl-0.4.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: verl\nVersion: 0.4.1\n")
    for module in ("verl", "verl_settings"):
        code = f"import entrostat.integrations.{module}"
        path = os.pathsep.join([str(tmp_path), *sys.path])
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
        )
        assert done.stderr.splitlines()[-1].startswith(
            "ImportError: entrostat.integrations.verl is written for verl 0.9.x"
        )


def test_what_verls_loggers_write_can_be_imported(tmp_path, capsys, monkeypatch):
    """Its console and its file, of the names that its trainer logs, with NumPy's numbers."""
    metric_utils = pytest.importorskip("verl.trainer.ppo.metric_utils")
    from verl.utils.tracking import Tracking

    monkeypatch.setenv("VERL_FILE_LOGGER_ROOT", str(tmp_path))
    evaluated = metric_utils.process_validation_metrics(["aime"] * 4, ["q"] * 4, {"acc": [1.0, 0.0, 0.0, 1.0]})
    best = evaluated["aime"]["acc"]["best@4/mean"]
    tracking = Tracking("project", "run", ["console", "file"])
    for step in range(3):
        metrics = {"actor/entropy": 1.0 / (step + 1), "critic/score/mean": np.float64(step / 4), "actor/mfu": 0.3}
        metrics |= {f"val-core/aime/acc/{name}": value for name, value in evaluated["aime"]["acc"].items()}
        tracking.log(metrics, step)
    tracking.finish()
    (tmp_path / "console.log").write_text(f"(TaskRunner pid=7) starting\n{capsys.readouterr().out}")
    for path in (tmp_path / "console.log", tmp_path / "project" / "run.jsonl"):
        (run,) = read_path(path)
        assert [line["entropy"] for line in run.metrics] == [1.0, 0.5, 1 / 3]
        assert [line["reward"] for line in run.metrics] == [0.0, 0.25, 0.5]
        assert (run.metrics[2]["eval/avg@4"], run.metrics[2]["eval/pass@4"]) == (0.5, pytest.approx(best))
        assert "actor/mfu" in run.kept
