import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from llmtrain.settings.config import (
    EvalConfig,
    ModelConfig,
    OptimConfig,
    RolloutConfig,
    SFTConfig,
    TaskConfig,
    TrainConfig,
)


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> TrainConfig:
    """A configuration small enough to train in seconds, whose warmed-up model lies ready."""
    from llmtrain.training.warmup import build_and_warm_up

    config = TrainConfig(
        steps=4,
        save_every=1,
        model=ModelConfig(hidden_size=32, num_layers=2, num_heads=2, intermediate_size=64),
        task=TaskConfig(train_problems=64, test_problems=8),
        sft=SFTConfig(examples=512, wrong_share=0.3, steps=60, lr=3e-3),
        rollout=RolloutConfig(prompts=8, n=4, max_new_tokens=12),
        optim=OptimConfig(lr=1e-3, mini_batch_size=4, micro_batch_tokens=256),
        eval=EvalConfig(every=2, k=2, samples=2),
    )
    path = tmp_path_factory.mktemp("models") / "small"
    build_and_warm_up(config, path)
    return TrainConfig(**{**vars(config), "model": ModelConfig(path=str(path))})


@pytest.fixture(scope="session")
def interpreter():
    """Triton's, which runs its kernels on a CPU; skips where there is none that works."""
    triton = pytest.importorskip("triton")
    if triton.__version__.startswith("3.6.") and np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        pytest.skip("the interpreter of Triton 3.6 needs NumPy < 2.4")


@pytest.fixture
def real():
    """The path of a real benchmark in the folder that ENTROSTAT_DATA names; skips where it is missing."""

    def path(name: str) -> str:
        found = Path(os.environ.get("ENTROSTAT_DATA", "ENTROSTAT_DATA")) / name
        if not found.is_file():
            pytest.skip(f"{found} is missing: ENTROSTAT_DATA names the folder of the benchmarks")
        return str(found)

    return path


# Small files of questions ---------------------------------------------------------------------------------------------


@pytest.fixture
def jsonl(tmp_path):
    """Writes a jsonl file: objects as JSON, text and bytes as they are."""

    def write(rows, name="questions.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [r if isinstance(r, bytes) else (r if isinstance(r, str) else json.dumps(r)).encode() for r in rows]
        path.write_bytes(b"\n".join(lines) + b"\n")
        return str(path)

    return write


@pytest.fixture
def parquet(tmp_path):
    """Writes a parquet file of several row groups."""

    def write(rows, name="questions.parquet"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
        return str(path)

    return write


@pytest.fixture
def verl():
    """Makes a row in verl's form."""

    def row(content, truth, source="sums", role="user"):
        return {
            "data_source": source,
            "prompt": [{"content": content, "role": role}],
            "ability": "MATH",
            "reward_model": {"ground_truth": truth, "style": "rule"},
            "extra_info": {"index": 0},
        }

    return row
