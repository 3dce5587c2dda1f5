"""llmtrain doctor: test which parts work on this machine.

llmtrain doctor                               everything
llmtrain doctor torch gloo                    only these
llmtrain doctor --need torch,deepspeed        exit code 1 unless both work
llmtrain doctor --gpu                         the trainer's own classes on a GPU: kernels, ZeRO, vLLM sleep and wake-up
llmtrain doctor --gpu --device cpu            a rehearsal of --gpu on the CPU
"""

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console

from entrostat.settings.commandline import Arguments

from ..doctor.findings import CHECKS, Check, choose, examine_all, gpu_checks, show


def main(args: list[str], checks: Sequence[Check] = CHECKS) -> int:
    """Run the checks, and return 0, or 1 if a needed check does not work; --gpu needs every check it does not skip."""
    gpu = Arguments(prog="llmtrain doctor", add_help=False)
    gpu.add_argument("--gpu", action="store_true", help="test the trainer's own classes with a tiny model")
    gpu.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="with --gpu: device to test")
    asked, args = gpu.parse_known_args(args)
    if asked.gpu:
        checks = gpu_checks(asked.device)
    parser = Arguments(prog="llmtrain doctor", description=__doc__, parents=[gpu])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these of {', '.join(c.name for c in checks)}")
    parser.add_argument("--need", default="", help="comma-separated names: exit code 1 unless all of them work")
    parser.add_argument("--timeout", type=float, help="seconds for each check, instead of its own limit")
    parser.add_argument("--json", action="store_true", help="print a list of findings as JSON")
    given = parser.parse_args(args)
    if given.timeout is not None and not given.timeout > 0:
        raise ValueError(f"--timeout must be positive; got {given.timeout:g}")
    needed = choose(list(filter(None, given.need.split(","))), checks)
    chosen = choose(given.names, checks) if given.names else list(checks)
    console = Console(stderr=given.json)
    findings = examine_all([check for check in checks if check in chosen or check in needed], console, given.timeout)
    if given.json:
        print(json.dumps([asdict(found) for found in findings], indent=2))
    else:
        show(findings, console)
    working = {found.name for found in findings if found.works}
    if asked.gpu and not needed:
        return int(any(not found.works and found.verdict != "skipped" for found in findings))
    return int(not all(check.name in working for check in needed))
