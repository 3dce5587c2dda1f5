import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from llmtrain.config import EvalConfig, ModelConfig, OptimConfig, RolloutConfig, SFTConfig, TaskConfig, TrainConfig


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> TrainConfig:
    """A configuration small enough to train in seconds, whose warmed-up model lies ready."""
    from llmtrain.warmup import build_and_warm_up

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
