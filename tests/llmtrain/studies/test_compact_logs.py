"""Compact logs: what they keep, and what they refuse."""

import json
from dataclasses import replace

import pytest

from entrostat.settings.plain_yaml import dump_yaml
from llmtrain.settings.config import TopologyConfig, TrainConfig
from llmtrain.settings.nested import to_dict
from llmtrain.studies import compact_logs

LINES = [
    {"step": 0, "entropy": 1 / 3, "reward": 0.25, "time/step": 1.0, "thermostat/target": 0.4},
    {"step": 1, "entropy": None, "reward": 0.5, "time/step": 1.0, "eval/pass@8": 0.75},
]


@pytest.fixture
def config(tmp_path):
    config = replace(TrainConfig(), out=str(tmp_path / "runs" / "ppo" / "0"), seed=0, steps=2)
    folder = tmp_path / "runs" / "ppo" / "0"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(dump_yaml(to_dict(config)))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return config


def test_what_pages_read_is_kept(config, tmp_path):
    path = compact_logs.path_of(tmp_path / "logs", config)
    assert path == tmp_path / "logs" / "ppo" / "0.json.gz"
    compact_logs.save(config, path)
    run = compact_logs.load(config, path)
    assert run.series("entropy")[1].tolist() == [0.333333]
    assert run.series("eval/pass@8")[0].tolist() == [1]
    assert run.targets == {0: 0.4}
    assert run.k == config.eval.k
    assert not run.series("time/step")[1].size


def test_the_folder_of_the_run_is_not_kept(config, tmp_path):
    path = compact_logs.path_of(tmp_path / "logs", config)
    compact_logs.save(config, path)
    run = compact_logs.load(config, path)
    assert run.config["out"] == "ppo/0"
    assert compact_logs.load(replace(config, out="elsewhere/ppo/0"), path).metrics == run.metrics


def test_a_log_of_other_settings_is_refused(config, tmp_path):
    path = compact_logs.path_of(tmp_path / "logs", config)
    compact_logs.save(config, path)
    with pytest.raises(ValueError, match=r"0\.json\.gz .*other settings: .*--logs"):
        compact_logs.load(replace(config, steps=3), path)


def test_what_changes_no_result_may_differ(config, tmp_path):
    """Its processes; and the trainer's pass for old log-probabilities, which `auto` leaves out where it is exact."""
    path = compact_logs.path_of(tmp_path / "logs", config)
    before = replace(config, rollout=replace(config.rollout, old_logp="trainer"))
    compact_logs.save(before, path)
    wanted = replace(config, topology=TopologyConfig(name="ray", rollout_engines=2))
    assert compact_logs.load(wanted, path).k == config.eval.k
    others = [replace(config, topology=TopologyConfig(name="ray", staleness=1))]
    others.append(replace(config, rollout=replace(config.rollout, old_logp="rollout")))
    for other in others:
        with pytest.raises(ValueError, match="other settings"):
            compact_logs.load(other, path)


def test_the_processors_of_a_run_are_kept(config, tmp_path):
    path = compact_logs.path_of(tmp_path / "logs", config)
    compact_logs.save(config, path)
    assert compact_logs.processors(tmp_path / "logs") == {"": 1}
    about = {"processor": "A (avx2)", "resumed": [{"processor": "A (avx2)"}, {"processor": "B"}, {}]}
    (tmp_path / "runs" / "ppo" / "0" / "manifest.json").write_text(json.dumps(about))
    compact_logs.save(config, path)
    assert compact_logs.processors(tmp_path / "logs") == {"A (avx2), then B": 1}
