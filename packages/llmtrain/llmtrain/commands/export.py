"""`llmtrain export`: the model of a run's checkpoint as a folder for transformers, vLLM and the Hugging Face Hub.

llmtrain export runs/countdown --out models/countdown               the newest checkpoint
llmtrain export runs/countdown --out models/countdown --hub-card    with a model card: README.md and training.png
llmtrain export runs/countdown --out models/best --best eval/avg@8  the best checkpoint by a metric
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from entrostat.logs.runlog import read_lines
from entrostat.settings.commandline import Arguments, writing


def main(args: list[str]) -> int:
    """Write the model of a run's checkpoint to a folder, optionally with a model card."""
    parser = Arguments(prog="llmtrain export", description=main.__doc__)
    parser.add_argument("run", help="run folder")
    parser.add_argument("--out", required=True, help="folder to write; it must be empty or new")
    parser.add_argument("--best", metavar="METRIC", help="best checkpoint by this metric, not the newest one")
    parser.add_argument("--hub-card", action="store_true", help="also write README.md, the model card, and its picture")
    given = parser.parse_args(args)
    from ..policy.checkpoint import check_whole, is_of_the_model, latest, step_of
    from ..policy.retention import best
    from ..training.run import run_config

    config = run_config(given.run)
    checkpoint = best(given.run, given.best) if given.best else latest(given.run)
    check_whole(checkpoint)
    out = Path(given.out)
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise ValueError(f"--out {out} is not empty: choose another folder")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        for path in filter(is_of_the_model, sorted(checkpoint.iterdir())):
            shutil.copy(path, out / path.name)
    print(f"{out}: the model of {checkpoint}")
    if given.hub_card:
        from ..studies.comparison import Run, figure
        from ..studies.model_card import model_card

        step = step_of(checkpoint)
        run = Run.read(given.run)
        run = replace(run, metrics=[line for line in run.metrics if line["step"] <= step])
        file = Path(given.run) / "manifest.json"
        manifest = json.loads(file.read_bytes()) if file.is_file() else {}
        samples = Path(given.run) / "samples.jsonl"
        prompt = read_lines(samples)[-1]["prompt"] if samples.is_file() else "…"
        figure([run], out / "training.png")
        with writing(out / "README.md"):
            card = model_card(out.resolve().name, run, config, manifest, step, prompt)
            (out / "README.md").write_text(card, encoding="utf-8")
        print(f"{out / 'README.md'}: model card; upload with: hf upload NAME {out}")
    return 0
