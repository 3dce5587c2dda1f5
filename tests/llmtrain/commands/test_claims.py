"""`llmtrain claims` on real runs of a small model, and refused arguments."""

import gzip
import json
from dataclasses import replace

import pytest

from entrostat.settings.plain_yaml import dump_yaml
from llmtrain.cli import main
from llmtrain.settings.nested import to_dict
from llmtrain.studies import claim_measurements


@pytest.mark.slow
def test_from_the_command_to_the_page(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(claim_measurements, "ALONE", 4)
    reward = replace(small.reward, overlong_buffer=small.rollout.max_new_tokens)  # no response is right
    config = replace(small, eval=replace(small.eval, every=0), reward=reward, threads=1)
    (tmp_path / "small.yaml").write_text(dump_yaml(to_dict(config)))
    page, out = tmp_path / "docs" / "claims_lm.md", tmp_path / "claims"
    page.parent.mkdir()
    command = ["claims", "token-flow", "--only", "first-order*", "--seeds", "2", "--json"]
    command += ["--config", str(tmp_path / "small.yaml"), "--out", str(out), "--page", str(page)]
    assert main(command) == 0
    said = capsys.readouterr()
    records = {one["name"]: one for one in json.loads(said.out[said.out.index("[\n") :])}
    assert list(records) == ["token-flow", "first-order-step"]
    assert len(records["token-flow"]["margins"]["null's error − error left"]["seeds"]) == 2
    assert "2 claims: " in said.err
    text = page.read_text()
    assert "| claim | paper | bandit | language model |" in text
    assert "token-flow --only 'first-order*' --seeds 2" in text
    kept = json.loads(gzip.decompress((page.parent / "claims_lm" / "measured.json.gz").read_bytes()))
    assert [len(one["change"]) for one in kept["tokens"]] == [16, 16]
    assert kept["entropy"] == {}
    times = [path.stat().st_mtime for path in out.glob("tokens/*/tokens.json")]
    assert main(command) == 0  # reads what is there
    assert [path.stat().st_mtime for path in out.glob("tokens/*/tokens.json")] == times
    assert main([*command, "--optim.lr", "0.5"]) == 2
    assert "other settings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        (["clip-threshold"], "'clip-threshold'; did you mean clip-thresholds"),
        (["--only", "xyz"], "'xyz'"),
        (["--seeds", "1"], "--seeds must be at least 2"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--bandit", "none.json"], "--bandit none.json"),
        (["--controller", "steer"], "leave --controller and --set out"),
        (["--stepz", "3"], "--stepz"),
    ],
)
def test_mistakes_are_told_in_a_line(wrong, names, capsys, tmp_path):
    assert main(["claims", *wrong, *(["--out", str(tmp_path)] if wrong[0].startswith("-") else [])]) == 2
    told = capsys.readouterr().err
    assert names in told
    assert told.count("\n") == 1
