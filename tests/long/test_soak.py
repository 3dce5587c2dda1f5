"""Two thousand steps of a tiny model: memory within 2 %, open files and threads flat. `make test-long` runs it."""

import gc
import os
import sys
from pathlib import Path

import pytest

from llmtrain.settings.config import (
    EvalConfig,
    ModelConfig,
    OptimConfig,
    RolloutConfig,
    SFTConfig,
    TaskConfig,
    TrainConfig,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
    pytest.mark.timeout(3600),
]
STEPS, WARM, EVERY = 2000, 200, 50
"""Steps of the run, steps before the first look, and steps between looks."""


def held() -> tuple[float, int, int]:
    """MiB of memory that this process holds, its open files and its threads."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    own = Path("/proc/self")
    return (
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        len(list((own / "fd").iterdir())),
        len(list((own / "task").iterdir())),
    )


def test_two_thousand_steps_hold_no_more_than_two_hundred(tmp_path):
    from llmtrain.training.trainer import Trainer
    from llmtrain.training.warmup import build_and_warm_up

    config = TrainConfig(
        out=str(tmp_path / "run"),
        steps=STEPS,
        save_every=100,
        threads=1,
        controller="thermostat",
        target=1.5,
        model=ModelConfig(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32),
        task=TaskConfig(train_problems=64, test_problems=4),
        sft=SFTConfig(examples=64, steps=5),
        rollout=RolloutConfig(prompts=2, n=4, max_new_tokens=6),
        optim=OptimConfig(lr=1e-4, mini_batch_size=1, micro_batch_tokens=256),
        eval=EvalConfig(every=100, k=1, samples=1),
    )
    build_and_warm_up(config, tmp_path / "model")
    looks: list[tuple[float, int, int]] = []

    def look(step: int, metrics: dict[str, float]) -> None:
        if step + 1 >= WARM and (step + 1) % EVERY == 0:
            looks.append(held())

    Trainer(config, tmp_path / "model").run(look)
    memory, files, threads = zip(*looks, strict=True)
    print(
        f"steps {WARM} to {STEPS}: {memory[0]:.1f} MiB, at most {max(memory) / memory[0] - 1:+.2%}; "
        f"{sorted(set(files))} files, {sorted(set(threads))} threads"
    )
    assert len(looks) == (STEPS - WARM) // EVERY + 1
    assert max(memory) < 1.02 * memory[0]
    assert len(set(files)) == len(set(threads)) == 1
