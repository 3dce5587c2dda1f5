"""Several ranks write the same files as one rank."""

import json

import evaluation_ranks
import pytest
from tests.ranks import group, run_ranks

pytestmark = pytest.mark.slow


def on(ranks, out):
    out.mkdir()
    run_ranks(group(ranks), evaluation_ranks.main, out)
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
