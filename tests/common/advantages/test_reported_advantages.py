"""Public reports of advantages elsewhere, tried here."""

import json
import re
from pathlib import Path

import pytest
import torch

from entrostat import get_advantage

REPORTS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "corpus/advantages/reported.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: f"{report['from']} {report['advantage']}")
def test_a_report(report):
    reward = torch.tensor(report["reward"], dtype=torch.float32)
    group = torch.tensor(report.get("group_id", [0] * len(reward)))
    told = {key: torch.tensor(value) for key, value in report.get("told", {}).items()}
    advantage = get_advantage(report["advantage"])
    if "refused" in report:
        with pytest.raises(ValueError, match=re.escape(report["refused"])):
            advantage(reward, group, **told)
    elif "order" in report:
        assert advantage(reward, group, **told).argsort(descending=True).tolist() == report["order"]
    else:
        assert advantage(reward, group, **told).tolist() == pytest.approx(report["gives"], abs=2e-4)
