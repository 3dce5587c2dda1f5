"""Several ranks write the same files as one rank."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llmtrain.process.local_ranks import free_port

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[1] / "evaluation_ranks.py"


def on(ranks, out):
    out.mkdir()
    common = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    processes = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(out)],
            env=os.environ | {k: str(v) for k, v in (common | {"RANK": r, "LOCAL_RANK": r}).items()},
        )
        for r in range(ranks)
    ]
    assert [process.wait(timeout=300) for process in processes] == [0] * ranks
    return [json.loads((out / f"rank-{r}.json").read_text()) for r in range(ranks)]


@pytest.mark.long
def test_two_ranks_write_what_one_writes(tmp_path):
    (alone,) = on(1, tmp_path / "one")
    first, second = on(2, tmp_path / "two")
    assert first["metrics"] == second["metrics"] == pytest.approx(alone["metrics"], abs=1e-5)
    assert {"eval/b/avg@2", "eval/b/auroc", "eval/a/prompt_entropy"} <= set(first["metrics"])
    assert (first["records"], second["records"], alone["records"]) == (2, 0, 2)
    lines = [[json.loads(x) for x in (tmp_path / n / "eval/responses.jsonl").open()] for n in ("one", "two")]
    for a, b in zip(*lines, strict=True):
        assert {k: pytest.approx(v, abs=1e-5) if isinstance(v, float) else v for k, v in a.items()} == b
