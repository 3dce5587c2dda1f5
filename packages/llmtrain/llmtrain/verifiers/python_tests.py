"""Run the unit tests of a Python program in a response.

The program is a block of the response, by what the tests ask for (code_blocks.py). The ground truth is Python text, a
list of statements such as "assert add(1, 2) == 3", functions test_... or HumanEval's {"test", "entry_point"}
(called_tests.py), or inputs and outputs (program_cases.py). Tests that check nothing are refused (checks_in_tests.py).
The program runs in one process and its tests in another, which compare plain values (answer_link.py): each in an empty
folder, with an environment of PYTHONHASHSEED only, limits on time, memory, processes, output and file size, and their
process group killed at the end. Memory and processor time are limited for all of their processes together. If the
kernel allows namespaces, each has no network, sees no other process, and its file system holds the Python interpreter,
read-only, and its own folder, of limited size. Otherwise a line on stderr says so when the verifier starts.

It does not protect from:
- tests that compare objects of the program's own classes with each other, or ask them whether they are right: the
  program decides (answer_link.py has the list);
- memory taken faster than it is read, every 20 ms: for that long, processes can go beyond their sum;
- without namespaces: a program that looks for the tests in the files of its user;
- without namespaces: many files in its folder, each under the limit, that fill a disk until the check ends;
- without namespaces: reading files that the user who trains may read; writing to files outside its folder, unless file
  permissions prevent it (as root it runs as a user without rights to write); the network; processes that left their
  group and survive a check that timed out;
- using the processor up to its time limit, on as many cores as it has processes;
- faults of the kernel: for code by an adversary, train in a container or a virtual machine.
"""

import json
import py_compile
import secrets
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from ..process.local_ranks import is_first
from ..process.text import signal_name
from .bounded_run import Ended, run_bounded
from .called_tests import called
from .code_blocks import program
from .code_names import asked
from .program_cases import IMPORTS, MAX_FILE_MIB, are_calls, cases_of, data_in, tests_of
from .verdict import Verdict
from .verifier import Verifier

MAX_PROCESSES = 16
MAX_FILES_MIB = 64
TAIL_BYTES = 4096
LINK = ("answer_link", "link_messages", "plain_data", "remote_objects", "tests_side")
"""Files that run in the sandbox; the first is the program there."""
OPEN = (
    "verifier python: this machine allows no namespaces, so programs can read the files of this user and use the "
    "network: train in a container without secrets"
)


class Plan(NamedTuple):
    """Preparation of a check."""

    tests: str
    """Python text that ends normally only if the program is right."""
    role: str
    """Kind of run of the program, see answer_link.py: `answer` or `program`."""
    imports: str = ""
    """Text before the program."""
    names: frozenset[str] = frozenset()
    """Names that the tests ask for."""


def tests(ground_truth: Any) -> str:
    """Return the tests as text.

    Raises:
        ValueError: for a ground truth that is neither text nor a list of texts, or empty.
    """
    found = data_in(ground_truth)
    lines = [found] if isinstance(found, str) else found
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines) or not "".join(lines).strip():
        raise ValueError("the ground truth of python is its unit tests: Python text, or a list of statements")
    return "\n".join(lines)


def plan_of(ground_truth: Any) -> Plan:
    """Return what a ground truth asks for.

    Raises ValueError for a ground truth without tests, or with tests that cannot be run or check nothing.
    """
    cases = cases_of(ground_truth)
    if cases is None or "test" in cases:
        text, name = (ground_truth, None) if cases is None else (cases["test"], cases.get("entry_point"))
        if name is not None and not (isinstance(name, str) and name.isidentifier()):
            raise ValueError(f"entry_point is the name of a function, not {name!r:.60}")
        text = tests(text)
        return Plan(called(text, name or ""), "answer", names=asked(text) | {name or ""})
    if are_calls(cases):
        return Plan(tests_of(cases), "answer", IMPORTS, frozenset({"Solution", cases["fn_name"]}))
    return Plan(tests_of(cases), "program")


class PythonVerifier(Verifier):
    """Verifier that runs unit tests, `workers` at a time, each for at most `timeout` seconds in `memory_mib` MiB."""

    def __init__(self, *, workers: int = 2, timeout: float = 5.0, memory_mib: int = 1024) -> None:
        super().__init__()
        self.timeout, self.memory_mib = timeout, memory_mib
        self._link = _compiled()
        self._threads = ThreadPoolExecutor(workers)
        if is_first():
            self._try_sandbox()

    def _try_sandbox(self) -> None:
        """Print a warning if programs see files of the machine, because the kernel allows no namespaces.

        Raises ValueError if a program cannot be run at all: every response would count as wrong.
        """
        with tempfile.NamedTemporaryFile() as file:
            found = self._judge(f"import os\n\nassert not os.path.exists({file.name!r})", Plan("pass", "answer"))
        if "AssertionError" in found.reason:
            print(OPEN, file=sys.stderr)
        elif not (found.correct or self.failures):
            raise ValueError(f"verifier python: the sandbox cannot run {sys.executable}: {found.reason}")
        self.failures.clear()

    def judge(self, responses: Sequence[str], ground_truths: Sequence[Any]) -> list[Verdict]:
        plans = [plan_of(truth) for truth in ground_truths]
        pairs = zip(responses, plans, strict=True)
        codes = [program(response, plan.names, script=plan.role == "program") for response, plan in pairs]
        return list(self._threads.map(self._check, codes, plans))

    def _check(self, code: str, plan: Plan) -> Verdict:
        """Return the verdict on a program; a problem of the machine, such as a full disk, costs this item only."""
        try:
            return self._judge(code, plan)
        except OSError as error:
            self.failures["crash"] += 1
            return Verdict(False, f"the program could not be run: {error.strerror}", code)

    def _judge(self, code: str, plan: Plan) -> Verdict:
        """Return the verdict on a program from how its tests end, or itself if it ends before them."""
        passed = secrets.token_hex(16)  # only the process of the tests knows it
        before = "" if "from __future__" in code else plan.imports
        texts = {plan.role: before + code, "tests": f"{plan.tests}\n\nprint('\\n{passed}', flush=True)\n"}
        with tempfile.TemporaryDirectory(prefix="llmtrain-check-", ignore_cleanup_errors=True) as folder:
            ended = self._run([self._process(Path(folder), name, text) for name, text in texts.items()])
        if ended.flooded:
            return Verdict(False, f"more than {MAX_FILE_MIB} MiB of output", code)
        if ended.exit_code is None:
            self.failures["timeout"] += 1
            return Verdict(False, f"timed out after {self.timeout:g} s", code)
        if ended.exit_code == 0 and passed in ended.out:
            return Verdict(True, "all tests passed", code)
        return Verdict(False, _why(ended.exit_code, ended.err), code)

    def _run(self, processes: list[dict[str, str]]) -> Ended:
        """Run the program and its tests, and return how the first of the two ended."""
        settings = {
            "processes": processes,
            "python": sorted({sys.base_prefix, sys.prefix}),
            "cpu_seconds": int(self.timeout) + 1,
            "memory_mib": self.memory_mib,
            "most_processes": MAX_PROCESSES,
            "file_mib": MAX_FILE_MIB,
            "files_mib": MAX_FILES_MIB,
        }
        sandbox = str(Path(__file__).with_name("sandbox.py"))
        return run_bounded(
            [sys.executable, "-I", "-S", "-B", sandbox, json.dumps(settings)],
            timeout=self.timeout,
            most=MAX_FILE_MIB * 2**20,
            keep=TAIL_BYTES,
            cwd=Path(__file__).parent,
            env={},
        )

    def _process(self, folder: Path, role: str, text: str) -> dict[str, str]:
        """Return the settings of a process, with a folder of its own in which its files are."""
        work, root = folder / role / "work", folder / role / "root"
        work.mkdir(parents=True)
        root.mkdir()
        for name, content in self._link.items():
            (work / name).write_bytes(content)
        (work / "text.py").write_bytes(text.encode(errors="replace"))
        return {"role": role, "folder": str(work), "root": str(root)}

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


def _compiled() -> dict[str, bytes]:
    """Return the files that run in the sandbox, compiled: that takes a fifth of a check otherwise."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="llmtrain-link-") as folder:
        for name in LINK:
            made = Path(folder, name)
            py_compile.compile(str(Path(__file__).with_name(f"{name}.py")), cfile=str(made), dfile=name, doraise=True)
            found[f"{name}.pyc"] = made.read_bytes()
    found["program.pyc"] = found.pop(f"{LINK[0]}.pyc")
    return found


def _why(exit_code: int, problem: str) -> str:
    """Return the reason of a failure, in a line."""
    if name := signal_name(exit_code - 128):
        return f"the program ended by {name}"
    last = problem.rpartition("\n")[2][:200]
    return last or f"the program ended with exit code {exit_code} before its tests"
