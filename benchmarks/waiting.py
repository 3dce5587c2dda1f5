"""Seconds of a training step whose threads spin or sleep while they wait, alone and beside a process that takes a core.

    python -m benchmarks.waiting

The small model with random weights, 12 steps each, in a process of its own; medians after the third step. Then smaller
ones on one thread and two.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from llmtrain.policy.model import build_tiny, save
from llmtrain.settings.config import TrainConfig
from llmtrain.tasks import get_task

WAYS = {
    "spin": {"OMP_WAIT_POLICY": "ACTIVE"},
    "300,000 turns, libgomp's default": {"GOMP_SPINCOUNT": "300000"},
    "3,000": {"GOMP_SPINCOUNT": "3000"},
    "1,000": {"GOMP_SPINCOUNT": "1000"},
    "100": {"GOMP_SPINCOUNT": "100"},
    "sleep": {"OMP_WAIT_POLICY": "PASSIVE"},
}
"""Ways to wait, as settings of OpenMP, which the command leaves alone."""


SIZES = (16, 32, 64, 128)
"""Widths of models whose steps are timed on one thread, on two, and on as many as training chooses."""


def seconds(model: Path, environment: dict[str, str], out: Path, *flags: str) -> float:
    command = [
        sys.executable,
        "-m",
        "llmtrain",
        "train",
        "--model.path",
        str(model),
        "--steps",
        "12",
        "--out",
        str(out),
    ]
    command += ["--eval.every", "0", "--save-every", "100", "--controller", "entropy_bonus", "--overwrite"]
    command += flags
    without = {name: x for name, x in os.environ.items() if name not in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY")}
    subprocess.run(command, env=without | environment, check=True, capture_output=True)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(line["time/step"] for line in lines[3:] if "time/step" in line)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = get_task(TrainConfig()).build_tokenizer(0)
        save(build_tiny(len(tokenizer)), tokenizer, Path(folder) / "model")
        print(f"| {os.cpu_count()} cores | " + " | ".join(WAYS) + " |\n|---|" + "--:|" * len(WAYS))
        for name in ("alone", "beside another process"):
            other = None if name == "alone" else subprocess.Popen([sys.executable, "-c", "while True: pass"])
            try:
                took = [seconds(Path(folder) / "model", x, Path(folder) / "run") for x in WAYS.values()]
            finally:
                if other is not None:
                    other.kill()
            print(f"| {name} | " + " | ".join(f"{x:.2f} s" for x in took) + " |", flush=True)
        print("\n| width, prompts | 1 thread | 2 threads | chosen |\n|---|--:|--:|--:|")
        for hidden in SIZES:
            shape = {"hidden": hidden, "layers": 4 if hidden == 128 else 2, "heads": 2, "kv_heads": 2}
            save(build_tiny(len(tokenizer), **shape, intermediate=2 * hidden), tokenizer, Path(folder) / "small")
            for prompts in (8, 32):
                sizes = ("--rollout.prompts", f"{prompts}", "--optim.mini-batch-size", f"{prompts // 2}")
                took = [
                    seconds(Path(folder) / "small", {}, Path(folder) / "run", *sizes, *threads)
                    for threads in (("--threads", "1"), ("--threads", "2"), ())
                ]
                print(f"| {hidden}, {prompts} | " + " | ".join(f"{x:.3f} s" for x in took) + " |", flush=True)


if __name__ == "__main__":
    main()
