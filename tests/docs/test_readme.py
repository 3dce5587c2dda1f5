"""The README is short, and its numbers are those of the pages that it names."""

import gzip
import importlib
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from llmtrain.studies import claims_page  # noqa: F401 (registers the claims)
from llmtrain.studies.claim_registry import CLAIMS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FINDINGS = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
THEORY = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
ONE_LINE = " ".join(README.split())


def test_two_screens():
    assert len(README.splitlines()) <= 96


def test_verdicts_are_those_of_the_theory_page():
    rows = re.findall(r"^\| \[[^\]]+\]\(#[^)]+\) \| [^|]+ \| (holds if|holds|fails as stated)", THEORY, re.MULTILINE)
    of = Counter(rows)
    verdicts = f"{of['holds']} hold, {of['holds if']} hold under a condition, {of['fails as stated']} fail as stated"
    assert f"Of [{of.total()} claims](docs/theory.md)" in ONE_LINE
    assert verdicts in ONE_LINE
    faults = re.search(r"(\d+) faults put into the code, each changes a verdict", THEORY)[1]
    assert f"We broke the code in {faults} ways; each break changed a verdict" in ONE_LINE
    assert len(CLAIMS) == 9
    assert "Nine are also [tested in a language model]" in ONE_LINE


def test_which_controller_when_is_the_table_of_the_findings():
    (chosen,) = re.findall(r"^\| to raise.*\n\|---.*\n((?:\|.*\n)+)", FINDINGS, re.MULTILINE)
    found = dict(re.findall(r"^\| (\S+) \| (.*) \|$", chosen.replace("**", ""), re.MULTILINE))
    (shown,) = re.findall(r"^\| you want.*\n\|---.*\n((?:\|.*\n)+)", README, re.MULTILINE)
    rows = dict(re.findall(r"^\| more (\S+) \| (.*) \|$", shown, re.MULTILINE))
    best = {what: [re.split(r", (?=`)", cell)[0] for cell in row.split(" | ")] for what, row in found.items()}
    assert {what: row.split(" | ") for what, row in rows.items()} == best


def test_the_rules_that_kept_entropy_are_counted():
    """Rows: rule, entropy, reward, avg@8, pass@8; a difference in bold leaves out 0. Held: 0.15 nats or more."""
    repeat = FINDINGS.partition("## Problems that repeat")[2].partition("## ")[0]
    rows = [line.split(" | ") for line in repeat.splitlines() if re.match(r"\| `.*\| 0\.\d+ \| 0\.\d+", line)]
    assert len(rows) == 17
    kept = [row for row in rows if float(row[1]) >= 0.15]
    higher = [row for row in kept if "**+" in row[4]]
    assert f"raised pass@8 ({len(higher)} of {len(kept)} rules)" in ONE_LINE
    assert not [row for row in rows if "**+" in row[3]]
    assert "left avg@8 unchanged" in ONE_LINE


def test_the_fall_of_pass_at_8_is_that_of_the_logs():
    def ends(rule: str) -> tuple[float, float]:
        logs = (ROOT / "docs/data/findings/countdown_wide" / rule).glob("*.json.gz")
        found = [json.loads(gzip.decompress(path.read_bytes()))["metrics"]["eval/pass@8"] for path in logs]
        scores = [[score for score in run if score is not None] for run in found]
        assert len(scores) == 3
        return sum(run[0] for run in scores) / 3, sum(run[-1] for run in scores) / 3

    start, free = ends("ppo")
    _, held = ends("thermostat_mode=anchor_target=0.26")
    assert f"fell from {start:.2f} to {free:.2f} under GRPO" in ONE_LINE
    assert f"it stayed at {held:.2f}, and the reward was no lower" in ONE_LINE
    wide = FINDINGS.partition("## Problems that never repeat")[2]
    (row,) = re.findall(
        r"^\| `thermostat \(mode=anchor, target=0.26\)` \| [^|]+ \| ([^|]+) \|.*–?.* \|$", wide, re.MULTILINE
    )[:1]
    assert "**+" in row


def test_what_is_said_of_the_pretrained_model_is_in_the_findings():
    """Rows: rule, entropy, reward, avg@8, pass@8, the last three with their differences from GRPO."""
    section = (
        FINDINGS.partition("## A pretrained model\n")[2]
        .partition("\n| rule | entropy | reward")[2]
        .partition("\n\n")[0]
    )
    rows = {line.split("`")[1]: line.split(" | ") for line in section.splitlines() if line.startswith("| `")}
    assert set(rows) == {
        "ppo",
        "kl_ref (beta=0.05)",
        *(f"thermostat (mode={m}, target=0.5x)" for m in ("anchor", "bonus")),
    }
    ends = {name: row[4].split()[0] for name, row in rows.items()}
    assert f"pass@8 is {ends['ppo']} under GRPO" in ONE_LINE
    told = [name for name, row in rows.items() if "**" in row[4]]
    if told:
        best = max(told, key=lambda name: float(ends[name]))
        reward, average, gain = (re.search(r"\((.*)\)", cell)[1] for cell in rows[best][2:5])
        lost = [f"{what} {cell}" for what, cell in (("reward", reward), ("avg@8", average)) if cell.startswith("**-")]
        said = "; ".join([gain, *([", ".join(lost)] if lost else [])]).replace("*", "")
        assert f"{ends[best]} under `{best}` ({said}); {len(told)} of {len(rows) - 1} rules pay." in ONE_LINE
        assert lost or "at a price" not in ONE_LINE
    assert bool(told) == ("pay on a pretrained model" in ONE_LINE or "**Control pays on" in ONE_LINE)
    seeds = re.search(r"(\d+) of (\d+) seeds each", FINDINGS.partition("## A pretrained model\n")[2])
    assert (f"[{seeds[0].removesuffix(' each')}]" in ONE_LINE) if seeds else "**Control" in ONE_LINE


@pytest.mark.slow
def test_verl_reads_its_settings():
    pytest.importorskip("verl.trainer.ppo.core_algos", reason="pip install --no-deps -c constraints.txt verl")
    from hydra import compose, initialize_config_dir
    from verl.utils.config import omega_conf_to_dataclass

    importlib.import_module("entrostat.integrations.verl")
    (script,) = re.findall(r"^```bash\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    overrides = re.findall(r"^ +(\+?[\w.]+=\S+)", script, re.MULTILINE)
    own = ["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8", "actor_rollout_ref.rollout.n=8"]
    folder = Path(importlib.import_module("verl").__file__).parent / "trainer/config"
    with initialize_config_dir(str(folder), version_base=None):
        composed = compose("ppo_trainer", overrides=[*own, *overrides])
    policy_loss = omega_conf_to_dataclass(composed.actor_rollout_ref.actor).policy_loss
    assert policy_loss.loss_mode == "entrostat/thermostat"
    assert dict(policy_loss.controller_args) == {"target": "0.4x"}
