"""Checks of this machine and their results.

Every check runs in its own process with a time limit, so a check that hangs or crashes does not affect the others; no
process is left behind.
"""

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec

from rich.console import Console
from rich.table import Table

from entrostat.settings.choosing import unknown
from entrostat.settings.installation import remedy

from ..process.text import one_line, signal_name
from .guard import TIME_UP

SLOW = 10.0
"""Seconds above which the report calls a check slow to start."""


@dataclass(frozen=True)
class Check:
    """Check of a package or device."""

    name: str
    package: str
    """Import name of the required package."""
    install: str
    """Command that installs it."""
    limit: float = 10.0
    """Time limit in seconds."""
    slow: str = ""
    """Possible cause and fix if the check exceeds its limit."""
    target: str = ""
    """module:function to run; by default the function called `name` in checks.py."""
    arguments: tuple[str, ...] = ()
    """Arguments of the function."""
    needs: str = ""
    """Name of a check that must work first, or this one is skipped."""


@dataclass(frozen=True)
class Finding:
    """Result of a check."""

    name: str
    verdict: str
    """works, skipped, not installed, fails (with a cause), hangs (no answer within its limit) or crashes."""
    version: str
    seconds: float
    detail: str = ""
    """Report of a check that works."""
    cause: str = ""
    """Cause of a failure, in one line."""
    fix: str = ""

    @property
    def works(self) -> bool:
        return self.verdict == "works"


TORCH = "pip install torch"
CHECKS = (
    Check("torch", "torch", TORCH),
    Check("cuda", "torch", TORCH),
    Check("gloo", "torch", TORCH, 20.0, "ranks may not find each other: set GLOO_SOCKET_IFNAME=lo"),
    Check("nccl", "torch", TORCH, 30.0, "GPUs may not reach each other: set NCCL_DEBUG=INFO or NCCL_P2P_DISABLE=1"),
    Check("triton", "triton", "pip install triton", 20.0, "kernels are compiled first: retry with --timeout 60"),
    Check(
        "deepspeed",
        "deepspeed",
        remedy("deepspeed"),
        120.0,
        "it starts slowly: retry with --timeout 300",
    ),
    Check(
        "vllm",
        "vllm",
        remedy("vllm"),
        120.0,
        "an engine starts slowly: retry with --timeout 300",
    ),
    Check(
        "ray",
        "ray",
        remedy("ray"),
        30.0,
        "ports may be blocked: see /tmp/ray/session_latest/logs",
    ),
)


def gpu_checks(device: str) -> tuple[Check, ...]:
    """Return the checks of `--gpu` for a device."""
    report = "retry with --timeout 600"
    rows = (
        ("driver", "torch", 30.0, "the driver does not answer: nvidia-smi"),
        ("shared_memory", "torch", 10.0, ""),
        ("head", "triton", 180.0, f"kernels are compiled first: {report}"),
        ("broadcast", "torch", 90.0, "GPUs may not reach each other: set NCCL_DEBUG=INFO or NCCL_P2P_DISABLE=1"),
        ("zero", "deepspeed", 240.0, f"it starts slowly: {report}"),
        ("engine", "vllm", 300.0, f"an engine starts slowly: {report}"),
    )
    install = {check.package: check.install for check in CHECKS}
    return tuple(
        Check(
            name,
            package,
            install[package],
            limit,
            slow,
            f"llmtrain.doctor.gpu_checks:{name}",
            (device,),
            needs="driver" if device == "cuda" and name not in ("driver", "shared_memory") else "",
        )
        for name, package, limit, slow in rows
    )


def examine(check: Check, timeout: float | None = None) -> Finding:
    """Run a check in its own process. timeout: seconds, overrides the check's limit."""
    if find_spec(check.package) is None:
        return Finding(check.name, "not installed", "", 0.0, cause=f"no package {check.package}", fix=check.install)
    limit = timeout or check.limit
    target = check.target or f"llmtrain.doctor.checks:{check.name}"
    began = time.monotonic()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "llmtrain.doctor.guard",
            str(limit),
            sys.executable,
            "-m",
            "llmtrain.doctor.findings",
            target,
            *check.arguments,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is passed on below
        text=True,
        errors="replace",
    )
    try:
        out, err = process.communicate()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    seconds = round(time.monotonic() - began, 1)
    verdict, said = judge(process.returncode, out, err, limit, check)
    return Finding(check.name, verdict, said.pop("version", "") or version(check.package), seconds, **said)


def examine_all(checks: Sequence[Check], console: Console, timeout: float | None = None) -> list[Finding]:
    """Run the checks one after the other; skip a check if the one it needs was run and does not work.

    The console names the check that runs and its time limit: a line for each, or on a terminal a line that changes.
    """
    findings: list[Finding] = []
    for i, check in enumerate(checks, 1):
        if any(found.name == check.needs and not found.works for found in findings):
            findings.append(Finding(check.name, "skipped", "", 0.0, cause=f"{check.needs} does not work"))
            continue
        running = f"{i} of {len(checks)}: {check.name}, up to {timeout or check.limit:g} s"
        if not console.is_terminal:
            console.print(running, highlight=False)
        with console.status(running):
            findings.append(examine(check, timeout))
    return findings


def judge(code: int, out: str, err: str, limit: float, check: Check) -> tuple[str, dict[str, str]]:
    """Return the verdict for a process's exit code and output, and the Finding fields that follow from them."""
    last = next((line.strip() for line in reversed(err.splitlines()) if line.strip()), "")
    if code == TIME_UP:
        return "hangs", {
            "cause": one_line(f"no answer within {limit:g} s" + (f"; last output: {last}" if last else "")),
            "fix": check.slow or f"retry with --timeout {max(60, 3 * limit):g}",
        }
    lines = out.splitlines()
    if code == 0 and lines:
        said = json.loads(lines[-1])
        if "detail" in said:
            return "works", said
        if "skipped" in said:
            return "skipped", {"cause": said["skipped"]}
        return "fails", {**said, "fix": said["fix"] or f"reinstall it: {check.install}"}
    name = signal_name(code - 128)
    end = f"killed by {name}" if name else f"ended with exit code {code}"
    return "crashes", {
        "cause": one_line(end + (f": {last}" if last else "")),
        "fix": f"reinstall it: {check.install}",
    }


def version(package: str) -> str:
    """Return the version of the distribution that provides this package; empty if unknown."""
    names = metadata.packages_distributions().get(package, [])
    return metadata.version(names[0]) if names else ""


def answer(target: str, *arguments: str) -> int:
    """Run a check in this process, and print its result as the last line of stdout; other output goes to stderr."""
    from .checks import Skip

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, _, function = target.partition(":")
    try:
        said = {"detail": getattr(import_module(module), function)(*arguments)}
    except Skip as reason:
        said = {"skipped": str(reason)}
    except Exception as error:
        last = traceback.format_exception_only(error)[-1] if not hasattr(error, "fix") else str(error)
        said = {"cause": one_line(last), "fix": getattr(error, "fix", "")}
    print(json.dumps(said), file=out, flush=True)
    return 0


def show(findings: Iterable[Finding], console: Console) -> None:
    """Print a table, and a line for each check that does not work or is slow."""
    table = Table("", "verdict", "version", "s", "tried", box=None, header_style="dim")
    notes = []
    for found in findings:
        style = {"works": "green", "not installed": "dim", "skipped": "dim"}.get(found.verdict, "red")
        table.add_row(
            found.name, f"[{style}]{found.verdict}", found.version, f"{found.seconds:.1f}", found.detail, style=None
        )
        if found.verdict == "skipped":
            notes.append(f"{found.name}: skipped, {found.cause}")
        elif not found.works:
            notes.append(f"{found.name}: {found.cause.rstrip('.')}. Fix: {found.fix}")
        elif found.seconds > SLOW:
            notes.append(f"{found.name}: works, but took {found.seconds:.0f} s to start")
    console.print(table)
    for note in notes:
        console.print(note, highlight=False, markup=False, soft_wrap=True)


def choose(names: Sequence[str], checks: Sequence[Check]) -> list[Check]:
    """Return the named checks, in the order of `checks`. Raises ValueError for an unknown name."""
    known = [check.name for check in checks]
    for name in names:
        if name not in known:
            raise ValueError(unknown("check", name, known))
    return [check for check in checks if check.name in names]


if __name__ == "__main__":
    sys.exit(answer(*sys.argv[1:]))
