"""Use the library, the simulator and the trainer on other versions of Python and of what they need.

    python tests/install/matrix.py                                    3 Pythons × 3 sets of versions
    python tests/install/matrix.py --python 3.12 --versions lowest    one of them
    python tests/install/matrix.py --torch pypi                       with PyPI's builds of torch, gigabytes on Linux

Each combination is an environment of its own outside the checkout. uv gets its Python, resolves the extra `train`,
and installs torch's CPU build from its own index, or PyPI's: the lowest versions that pyproject.toml allows, those of
constraints.txt, or the newest. Then it runs the quick tests of the library and the simulator, and trains for a step.
Prints a line a combination; exit code 1 if one of them fails. Needs a network, and about ten minutes for a
combination on two cores.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from resolve import PYTHONS, SOURCE_ONLY, stranger
from wheel import TINY

ROOT = Path(__file__).parents[2]
VERSIONS = {
    "lowest": ["--resolution", "lowest-direct"],
    "tested": ["-c", "constraints.txt"],
    "newest": ["--upgrade"],
}
"""Arguments of uv's resolution by name."""
TESTS = ("tests/common", "tests/toybandit")
TOOLS = [
    "pytest",
    "pytest-timeout",
    "pytest-rerunfailures",
    "pytest-xdist",
    "hypothesis",
    "psutil",
    "packaging",
    "wandb",
]
"""Requirements of the tests, in the newest versions."""


def steps(folder: Path, python: str, versions: str, torch: str) -> list[list[str]]:
    """Return the commands for a combination, which works in an empty folder."""
    uv = [sys.executable, "-m", "uv"]
    wheels = ["--only-binary", ":all:", *(word for name in SOURCE_ONLY for word in ("--no-binary", name))]
    build = ["--torch-backend", "cpu"] if torch == "cpu" else []
    here, asked = str(folder / "venv" / "bin" / "python"), str(folder / "requirements.txt")
    resolve = [*uv, "pip", "compile", "--no-config", "--quiet", "--python", here]
    install = [*uv, "pip", "install", "--no-config", "--quiet", "--python", here]
    return [
        [*uv, "venv", "--no-config", "--quiet", "--python", python, str(folder / "venv")],
        [*resolve, "pyproject.toml", "--extra", "train", *VERSIONS[versions], *wheels, *build, "-o", asked],
        [*install, *build, "-r", asked, *TOOLS],
        [*install, "--no-deps", "-e", str(ROOT)],
        *(
            [here, "-m", "pytest", "-q", "-m", "not slow and not long", "-p", "no:cacheprovider", tests]
            for tests in TESTS
        ),
        [here, "-m", "llmtrain", "train", *TINY.replace("runs/tiny", str(folder / "run")).split()],
    ]


def fault(python: str, versions: str, torch: str) -> str:
    """Return the last words of the first command that fails for a combination; empty if none does."""
    kept = {key: value for key, value in stranger().items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    with tempfile.TemporaryDirectory() as folder:
        for command in steps(Path(folder), python, versions, torch):
            done = subprocess.run(
                command, cwd=ROOT, env=kept | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
            )
            if done.returncode:
                return f"{' '.join(command)}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", choices=PYTHONS, nargs="+", default=PYTHONS)
    parser.add_argument("--versions", choices=VERSIONS, nargs="+", default=list(VERSIONS))
    parser.add_argument("--torch", choices=("cpu", "pypi"), default="cpu")
    given = parser.parse_args()
    failed = 0
    for python in given.python:
        for versions in given.versions:
            began = time.monotonic()
            problem = fault(python, versions, given.torch)
            print(
                f"{'FAILS' if problem else 'ok   '}  {python}  {versions}  {time.monotonic() - began:4.0f} s  {problem}"
            )
            sys.stdout.flush()
            failed += bool(problem)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
