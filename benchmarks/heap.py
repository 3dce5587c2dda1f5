"""Seconds, page faults and memory of a process that keeps freed memory and of one that returns it.

    python -m benchmarks.heap                                the small model with random weights
    python -m benchmarks.heap --model models/smollm2-135m    the pretrained one on short instructions

Both kinds run by turns, each in a process of its own: median seconds of a step after the third, page faults and peak
memory of the whole process as Linux counts them.
"""

import argparse
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
    "returns freed memory": "import sys; from llmtrain.cli import main; sys.exit(main(sys.argv[1:]))",
    "keeps it": "import sys; from llmtrain.cli import main; sys.exit(main())",
}
"""Programs that run one command line."""
PRETRAINED = (
    "--preset smollm-cpu --sft.steps 0 --task.name constraints --task.train-problems 1792 --task.test-problems 96 "
    "--rollout.prompts 4 --rollout.max-new-tokens 24 --optim.mini-batch-size 2 --optim.lr 2e-5"
)


def measure(program: str, flags: list[str], out: Path) -> tuple[float, int, float]:
    """Return the median seconds of a step after the third, the page faults, and the peak memory (GiB)."""
    command = ["train", *flags, "--eval.every", "0", "--save-every", "1000", "--threads", "1", "--out", str(out)]
    with tempfile.TemporaryFile() as said:
        run = subprocess.Popen([sys.executable, "-c", program, *command, "--overwrite"], stdout=said, stderr=said)
        _, status, used = os.wait4(run.pid, 0)
        if status:
            said.seek(0)
            raise RuntimeError(said.read().decode())
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    seconds = statistics.median(line["time/step"] for line in lines[3:] if "time/step" in line)
    return seconds, used.ru_minflt, used.ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a pretrained model; without it, a small model is made")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--turns", type=int, default=2, help="runs of each kind")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or f"{folder}/model"
        if not given.model:
            tokenizer = get_task(TrainConfig()).build_tokenizer(0)
            save(build_tiny(len(tokenizer)), tokenizer, Path(model))
        flags = ["--model.path", model, "--steps", str(given.steps), *(PRETRAINED.split() if given.model else ())]
        found: dict[str, list[tuple[float, int, float]]] = {name: [] for name in WAYS}
        for _ in range(given.turns):
            for name, program in WAYS.items():
                found[name].append(measure(program, flags, Path(folder) / "run"))
    medians = {name: statistics.median(seconds for seconds, _, _ in runs) for name, runs in found.items()}
    print("| process | seconds a step | times | page faults | peak GiB |\n|---|---|---|---|---|")
    for name, runs in found.items():
        times, faults = medians[name] / medians["returns freed memory"], statistics.median(one for _, one, _ in runs)
        print(f"| {name} | {medians[name]:.2f} | {times:.2f} | {faults:,.0f} | {max(gib for _, _, gib in runs):.2f} |")


if __name__ == "__main__":
    main()
