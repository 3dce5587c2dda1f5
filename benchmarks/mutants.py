"""Mutation test of the core: which small faults in it do the quick tests notice?

    pip install cosmic-ray
    python -m benchmarks.mutants --out runs/mutants                 all modules, 60 faults each; an hour on one core
    python -m benchmarks.mutants --only plan,learner --each 100     some of them
    python -m benchmarks.mutants --out runs/mutants --page          write the shares into CONTRIBUTING.md
    python -m benchmarks.mutants --simulator                        those of `simulator_faults`; half an hour
    python -m benchmarks.mutants --simulator --page                 write them into CONTRIBUTING.md too

A fault is one of cosmic-ray's mutations of one place: another operator, comparison, number or constant, a condition
that is always or never true, a loop that does not run, an exception that is not caught. One is drawn for each place,
and places are drawn at random with a fixed seed; annotations and decorators are left alone. A fault is killed if the
tests of its module fail, or take ten times as long. Each answer is written at once, and a stopped run resumes. The
survivors are listed: some change nothing that anybody could see.

With --simulator the faults are those of `simulator_faults`, put in by hand, and the tests are the quick ones of the
simulator and of the theorems; the first that fails is named.
"""

import argparse
import ast
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.simulator_faults import FAULTS, UNCLAIMED, Fault

ROOT = Path(__file__).parents[1]
COMMON, TOY, LLM = "packages/common/entrostat", "packages/toybandit/toybandit", "packages/llmtrain/llmtrain"
PATHS = [ROOT.joinpath(name).parent for name in (COMMON, TOY, LLM)] + [ROOT / "apps"]
CONTROLLERS = ("covariance", "positive", "steer", "opefo", "entropic")
OF_ALL = "tests/common/test_plan.py tests/common/test_chaining.py tests/common/test_published_values.py"
"""Tests that run over all rules."""
MODULES = {
    "plan": (f"{COMMON}/plan.py", "tests/common/test_plan.py"),
    "entropy_change": (f"{COMMON}/entropy_change.py", "tests/common/test_entropy_change.py"),
    "advantages": (f"{COMMON}/advantages/groups.py", "tests/common/advantages"),
    **{name: (f"{COMMON}/controllers/{name}.py", f"tests/common/test_{name}.py {OF_ALL}") for name in CONTROLLERS},
    "simulator": (
        f"{TOY}/simulator.py",
        "tests/toybandit/test_plain_loops.py tests/toybandit/test_simulator.py tests/toybandit/test_dynamics.py",
    ),
    "learner": (f"{LLM}/training/learner.py", "tests/llmtrain/training/test_learner.py"),
}
"""File of each module, and its tests."""
ARITHMETIC, BITS = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}, {"BitOr", "BitAnd", "BitXor"}
"""Operators that replace one another."""
PAGE, BEGIN, END = ROOT / "CONTRIBUTING.md", "<!-- mutants -->", "<!-- end of mutants -->"
"""Page of the shares, and the marks around them."""
FAULTS_BEGIN, FAULTS_END = "<!-- faults of the simulator -->", "<!-- end of faults of the simulator -->"
"""Marks around the faults of the simulator on that page."""
FIRST = ("plain_loops", "sampling", "updates", "policy", "rollout", "problem", "luck", "simulator")
"""Tests of the simulator that run first: they are quick, and notice most."""
SLOWER = 10
"""A mutant whose tests take so many times as long is stopped, and counts as killed."""


class Mutant(NamedTuple):
    """One fault in one place."""

    operator: str
    occurrence: int
    line: int
    code: str


def places(path: Path) -> dict[tuple[Any, ...], list[tuple[str, int]]]:
    """Return the operators, with their occurrence, at each place of a file that may be mutated."""
    import cosmic_ray.plugins
    from cosmic_ray.ast import ast_nodes, get_ast_from_path

    skipped = ranges(path.read_text())
    found: dict[tuple[Any, ...], list[tuple[str, int]]] = {}
    for name in cosmic_ray.plugins.operator_names():
        if not is_likely(name):
            continue
        operator, occurrence = cosmic_ray.plugins.get_operator(name)(), 0
        for node in ast_nodes(get_ast_from_path(path)):
            for start, end in operator.mutation_positions(node):
                if not any(first <= start < last for first, last in skipped):
                    found.setdefault((start, end), []).append((name, occurrence))
                occurrence += 1
    return found


def is_likely(operator: str) -> bool:
    """Return False for mutations that need names, and for those that hardly any code survives, such as 1.5 >> x."""
    kind, *words = operator.removeprefix("core/").split("_")
    if "Variable" in kind or kind == "RemoveDecorator":
        return False
    return kind != "ReplaceBinaryOperator" or any(set(words) <= group for group in (ARITHMETIC, BITS))


def ranges(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the positions (line, column) of annotations and decorators."""
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(text)):
        found += getattr(node, "decorator_list", [])
        found += [x for x in (getattr(node, "annotation", None), getattr(node, "returns", None)) if x is not None]
    return [((x.lineno, x.col_offset), (x.end_lineno or 0, x.end_col_offset or 0)) for x in found]


def drawn(path: Path, number: int, seed: int = 0) -> list[Mutant]:
    """Return mutants of a file, each of another place."""
    import cosmic_ray.plugins
    from cosmic_ray.mutating import mutate_code

    draw, text, mutants = random.Random(seed), path.read_bytes(), []
    known = sorted(places(path).items())
    for place, operators in draw.sample(known, min(number, len(known))):
        name, occurrence = draw.choice(sorted(operators))
        code = mutate_code(text, cosmic_ray.plugins.get_operator(name)(), occurrence)
        if code is not None and compiles(code):
            mutants.append(Mutant(name, occurrence, place[0][0], code))
    return mutants


def compiles(code: str) -> bool:
    """Return True if the code has a meaning at all."""
    try:
        compile(code, "mutant", "exec")
    except SyntaxError:
        return False
    return True


class First:
    """Plugin of pytest that keeps the name of the first test that fails."""

    name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.rpartition("/")[2]

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)


def failure(folder: Path, tests: list[str], limit: float) -> str:
    """Return the first test that fails in a child of this process, which has torch imported; empty if all pass."""
    result = folder / "first_failure"
    result.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        os.setsid()
        os.chdir(folder)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        import pytest

        flags, first = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not long"], First()
        status = int(pytest.main([*flags, *tests], plugins=[first]))
        result.write_text(first.name or (f"pytest ends with {status}" if status else ""))
        os._exit(0)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return result.read_text() if result.exists() else f"the process ends with {status}"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "the time limit"


def measure(name: str, each: int, folder: Path, out: Path) -> Iterator[dict[str, Any]]:
    """Yield what became of each mutant of a module, measured or read from `out`."""
    file, tests = MODULES[name][0], MODULES[name][1].split()
    log = out / f"{name}.jsonl"
    done = {tuple(one["mutant"]): one for one in map(json.loads, log.read_text().splitlines())} if log.exists() else {}
    source, text = folder / file, (ROOT / file).read_text()
    start = time.monotonic()
    if failing := failure(folder, tests, 3600):
        raise SystemExit(f"{failing} fails without a mutant")
    limit = SLOWER * (time.monotonic() - start)
    for mutant in drawn(ROOT / file, each):
        key = (mutant.operator, mutant.occurrence)
        if key not in done:
            source.write_text(mutant.code)
            killed = bool(failure(folder, tests, limit))
            source.write_text(text)
            before, after = (code.splitlines() for code in (text, mutant.code))
            changed = next((i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), 0)
            done[key] = {
                "mutant": key,
                "killed": killed,
                "line": changed + 1,
                "was": before[changed].strip(),
                "is": after[changed].strip(),
            }
            with log.open("a") as stream:
                stream.write(json.dumps(done[key], ensure_ascii=False) + "\n")
        yield done[key]


def tests_of_simulator(folder: Path) -> list[str]:
    """Return the files with the quick tests of the simulator and of the theorems, in the order in which they run."""
    names = sorted(path.stem.removeprefix("test_") for path in (folder / "tests/toybandit").glob("test_*.py"))
    ordered = [name for name in FIRST if name in names] + [name for name in names if name not in FIRST]
    return [*(f"tests/toybandit/test_{name}.py" for name in ordered), "tests/theory"]


def noticed(faults: Sequence[Fault], folder: Path, out: Path) -> Iterator[tuple[Fault, str]]:
    """Yield each fault of the simulator with the first test that fails, empty if none; measured or read from `out`."""
    log = out / "simulator_faults.jsonl"
    known = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    done = {(one["name"], one["is"]): one["test"] for one in known}
    tests, start = tests_of_simulator(folder), time.monotonic()
    if len(done) < len(faults) and (failing := failure(folder, tests, 3600)):
        raise SystemExit(f"{failing} fails without a fault")
    limit = SLOWER * (time.monotonic() - start)
    for fault in faults:
        key = (fault.name, fault.becomes)
        if key not in done:
            source, text = folder / fault.file, (ROOT / fault.file).read_text()
            if fault.was not in text:
                raise SystemExit(f"{fault.file} has no {fault.was!r}: mend the fault {fault.name!r}")
            source.write_text(text.replace(fault.was, fault.becomes, 1))
            done[key] = failure(folder, tests, limit)
            source.write_text(text)
            with log.open("a") as stream:
                stream.write(json.dumps({"name": key[0], "is": key[1], "test": done[key]}, ensure_ascii=False) + "\n")
        yield fault, done[key]


def simulator(folder: Path, out: Path, page: bool) -> None:
    """Print who notices each fault of the simulator, and write it into the page if asked."""
    rows = []
    for fault, test in noticed(FAULTS, folder, out):
        rows.append((fault, test))
        print(f"{fault.name:56} {test or 'NOT NOTICED'}", flush=True)
    killed = {fault.name for fault, test in rows if test}
    lines = [
        f"{sum(fault.name in killed for fault in chosen)} of {len(chosen)} {what}"
        for chosen, what in ((UNCLAIMED, "that no claim noticed"), (FAULTS, "in all"))
    ]
    left = ", ".join(fault.name for fault, test in rows if not test) or "none"
    told = f"Noticed: {' and '.join(lines)}. Survivors: {left}.\n"
    print(told, end="")
    if page:
        first = Counter(test.partition("::")[0] for _, test in rows if test)
        table = "".join(f"| `{file}` | {count} |\n" for file, count in first.most_common())
        write_between(FAULTS_BEGIN, FAULTS_END, f"{told}\n| fails first | faults |\n|---|---|\n{table}")


def write_between(begin: str, end: str, text: str) -> None:
    """Replace what stands between two marks of the page."""
    before, _, rest = PAGE.read_text().partition(begin)
    PAGE.write_text(f"{before}{begin}\n{text}{end}{rest.partition(end)[2]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MODULES), help="modules, joined by commas")
    parser.add_argument("--each", type=int, default=60, help="mutants of each module")
    parser.add_argument("--out", type=Path, default=Path("runs/mutants"), help="folder of the answers")
    parser.add_argument("--simulator", action="store_true", help="measure the faults of simulator_faults instead")
    parser.add_argument("--page", action="store_true", help=f"write the shares into {PAGE.name}")
    flags = parser.parse_args()
    flags.out.mkdir(parents=True, exist_ok=True)
    import numpy  # noqa: F401 (children have them at once)
    import pytest  # noqa: F401
    import torch

    torch.set_num_threads(1)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    shares: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("packages", "tests", "benchmarks", "apps", "docs", "examples", "pyproject.toml"):
            source = ROOT / part
            copy = shutil.copytree if source.is_dir() else shutil.copy
            ignore = {"ignore": shutil.ignore_patterns("__pycache__", "*.egg-info")} if source.is_dir() else {}
            copy(source, folder / part, **ignore)  # type: ignore[operator]
        sys.path[:0] = [str(folder / path.relative_to(ROOT)) for path in PATHS]
        if flags.simulator:
            simulator(folder, flags.out, flags.page)
            return
        for module in flags.only.split(","):
            found = list(measure(module, flags.each, folder, flags.out))
            good = sum(one["killed"] for one in found)
            shares[module] = (good, len(found))
            print(f"{module:16} {good:3} of {len(found):3} killed: {good / max(len(found), 1):.0%}", flush=True)
            for one in found:
                if not one["killed"]:
                    print(f"    line {one['line']}: {one['was']}  →  {one['is']}")
    killed, total = (sum(numbers) for numbers in zip(*shares.values(), strict=True))
    print(f"{'all':16} {killed:3} of {total:3} killed: {killed / max(total, 1):.1%}")
    if flags.page:
        lines = "".join(f"| `{name}` | {good} of {of} |\n" for name, (good, of) in shares.items())
        table = f"| module | killed |\n|---|---|\n{lines}| all | {killed} of {total}, {killed / total:.1%} |\n"
        write_between(BEGIN, END, table)


if __name__ == "__main__":
    main()
