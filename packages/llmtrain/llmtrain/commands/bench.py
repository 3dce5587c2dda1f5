"""llmtrain bench: speed and memory."""

import json
from pathlib import Path

from entrostat.settings.choosing import unknown
from entrostat.settings.commandline import Arguments
from entrostat.settings.commandline_help import fold


def kernels(args: list[str]) -> int:
    """Compare the fused head with dense torch and other libraries: forward and backward, time, memory and error."""
    parser = Arguments(prog="llmtrain bench kernels", description=kernels.__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="cuda if there is a GPU, else cpu")
    parser.add_argument("--turns", type=int, default=3, help="turns of each case; the median is shown")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 for torch's default")
    parser.add_argument("--vocabulary", type=int, help="only shapes with this vocabulary")
    parser.add_argument("--out", help="write the results as JSON to this file")
    given = parser.parse_args(args)
    if given.turns < 1:
        raise ValueError(f"--turns must be at least 1; got {given.turns}")
    import torch
    from rich.console import Console
    from rich.progress import track

    from ..kernels.timing import cases, machine, measure, report, table

    given.device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if given.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: torch finds no GPU; run `llmtrain doctor cuda` for the cause")
    console = Console()
    todo = [case for case in cases(given.device, given.threads) if given.vocabulary in (None, case.vocabulary)]
    if not todo:
        raise ValueError(f"no shape has the vocabulary {given.vocabulary}")
    results = list(measure(todo, given.turns, lambda x: track(x, "turns", console=console, transient=True)))
    console.print(table(results, machine(given.device, given.threads)))
    if given.out:
        found = report(results, machine(given.device, given.threads), given.turns)
        Path(given.out).write_text(json.dumps(found, indent=1) + "\n")
    return 0


BENCHMARKS = {"kernels": kernels}


def main(args: list[str]) -> int:
    """Measure speed and memory; `llmtrain bench kernels`."""
    if not args or args[0] in ("-h", "--help"):
        told = [f"  {name:10} {run.__doc__}" for name, run in BENCHMARKS.items()]
        print(fold("\n".join(["usage: llmtrain bench NAME [--help]", "", *told])))
        return 0
    if args[0] not in BENCHMARKS:
        raise ValueError(unknown("benchmark", args[0], BENCHMARKS))
    return BENCHMARKS[args[0]](args[1:])
