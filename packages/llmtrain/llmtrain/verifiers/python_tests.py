"""Run the unit tests of a Python program in a response.

The program is the last ```python block, else the last block without a language, else the whole response; the ground
truth is Python text, a list of statements such as "assert add(1, 2) == 3", or inputs and outputs (program_cases.py).
Both go into a file that a
separate process runs: in an empty folder, with an environment of PYTHONHASHSEED only, limits on time, memory, processes
and file size, no network if the kernel allows that, and its process group killed at the end.

It does not protect from:
- reading files that the user who trains may read, among them the tests themselves: a program can look for them in its
  own file, so a reward earned this way is possible;
- writing to files outside its folder, unless file permissions prevent it (as root it runs as a user without rights
  to write); many files, each under the limit, fill a disk until the check ends;
- the network, if the kernel allows no namespaces (then also processes that left their group survive the check);
- using the processor up to its time limit, on as many cores as it has processes;
- faults of the kernel: for code by an adversary, train in a container or a virtual machine.
"""

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..process.text import signal_name
from .program_cases import cases_of, with_cases
from .verdict import Verdict
from .verifier import Verifier

MAX_PROCESSES = 16
MAX_FILE_MIB = 16
TAIL_BYTES = 4096
_FENCE = re.compile(r"^[ \t]*```[ \t]*(?:[{.]*([\w+#-]+)[^`\n]*)?\r?$", re.MULTILINE)
"""Line that opens a block, with its language, or closes one."""
_PYTHON = ("python", "python3", "py")


def program(response: str) -> str:
    """Return the last closed block of Python, else the last without a language, else the whole response."""
    last: dict[bool, str] = {}
    opening = None
    for fence in _FENCE.finditer(response):
        if opening is None or fence[1]:
            opening = fence
            continue
        language = (opening[1] or "").lower()
        if not language or language in _PYTHON:
            last[bool(language)] = response[opening.end() : fence.start()].strip("\r\n")
        opening = None
    return last.get(True, last.get(False, response))


def tests(ground_truth: Any) -> str:
    """Return the tests as text.

    Raises:
        ValueError: for a ground truth that is neither text nor a list of texts, or empty.
    """
    lines = [ground_truth] if isinstance(ground_truth, str) else ground_truth
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines) or not "".join(lines).strip():
        raise ValueError("the ground truth of python is its unit tests: Python text, or a list of statements")
    return "\n".join(lines)


def text_of(code: str, ground_truth: Any) -> str:
    """Return the program with its tests. Raises ValueError for a ground truth that has none."""
    cases = cases_of(ground_truth)
    return with_cases(code, cases) if cases else f"{code}\n\n{tests(ground_truth)}"


class PythonVerifier(Verifier):
    """Verifier that runs unit tests, `workers` at a time, each for at most `timeout` seconds in `memory_mib` MiB."""

    def __init__(self, *, workers: int = 2, timeout: float = 5.0, memory_mib: int = 1024) -> None:
        super().__init__()
        self.timeout, self.memory_mib = timeout, memory_mib
        self._threads = ThreadPoolExecutor(workers)

    def judge(self, responses: Sequence[str], ground_truths: Sequence[Any]) -> list[Verdict]:
        codes = [program(response) for response in responses]
        texts = [text_of(code, truth) for code, truth in zip(codes, ground_truths, strict=True)]
        return list(self._threads.map(self._check, codes, texts))

    def _check(self, code: str, tested: str) -> Verdict:
        passed = secrets.token_hex(16)  # a program that exits before its tests does not print this
        with tempfile.TemporaryDirectory(prefix="llmtrain-check-", ignore_cleanup_errors=True) as folder:
            file, out, err = (Path(folder) / name for name in ("program.py", "stdout", "stderr"))
            text = f"{tested}\n\nprint('\\n{passed}', flush=True)\n"
            file.write_bytes(text.encode(errors="replace"))
            with out.open("wb") as stdout, err.open("wb") as stderr:
                exit_code = self._run(file, stdout, stderr)
            said, problem = _tail(out), _tail(err)
        if exit_code is None:
            self.failures["timeout"] += 1
            return Verdict(False, f"timed out after {self.timeout:g} s", code)
        if exit_code == 0 and said.endswith(passed):
            return Verdict(True, "all tests passed", code)
        return Verdict(False, _why(exit_code, problem), code)

    def _run(self, file: Path, stdout: Any, stderr: Any) -> int | None:
        """Return the exit code of the program, or None if it timed out."""
        settings = {
            "program": file.name,
            "cpu_seconds": int(self.timeout) + 1,
            "memory_mib": self.memory_mib,
            "processes": MAX_PROCESSES,
            "file_mib": MAX_FILE_MIB,
        }
        sandbox = str(Path(__file__).with_name("sandbox.py"))
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", sandbox, json.dumps(settings)],
            cwd=file.parent,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            return process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


def _tail(path: Path) -> str:
    """Return the end of a file, without trailing white space."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return file.read().decode(errors="replace").rstrip()


def _why(exit_code: int, problem: str) -> str:
    """Return the reason of a failure, in a line."""
    if name := signal_name(exit_code - 128):
        return f"the program ended by {name}"
    last = problem.rpartition("\n")[2][:200]
    return last or f"the program ended with exit code {exit_code} before its tests"
