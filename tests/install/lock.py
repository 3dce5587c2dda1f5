"""Lock the tested set of versions.

    python tests/install/lock.py              add what pyproject.toml asks for anew; other versions stay as they are
    python tests/install/lock.py --upgrade    take the newest versions that fit together

Writes requirements.lock (every extra, every platform, with hashes) and constraints.txt (the same versions without
hashes, and those of the dependency group no-deps). tests/install/test_lock.py fails if either file and pyproject.toml
disagree.
"""

import argparse
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"
CONSTRAINTS = ROOT / "constraints.txt"
HEADER = """\
# Tested versions, made from requirements.lock by tests/install/lock.py. Use: pip install -c constraints.txt ...
"""


def compile_lock(upgrade: bool = False) -> None:
    """Resolve every extra of pyproject.toml for all platforms and Python versions, against the public index alone."""
    command = [
        "uv", "pip", "compile", "pyproject.toml", "--no-config", "--all-extras", "--universal",
        "--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url",
        "--no-emit-package", "entrostat",
        "--quiet", "--output-file", LOCK.name,
    ]  # fmt: skip
    subprocess.run([*command, *(["--upgrade"] if upgrade else [])], cwd=ROOT, check=True)


def constraints(lock: str, pyproject: str) -> str:
    """Return the text of constraints.txt: each locked requirement without its hashes, then the group no-deps."""
    pins = [line.removesuffix("\\").strip() for line in lock.splitlines() if line[:1].isalnum()]
    alone = tomllib.loads(pyproject)["dependency-groups"]["no-deps"]
    return HEADER + "".join(f"{pin}\n" for pin in sorted([*pins, *alone], key=str.lower))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    compile_lock(parser.parse_args().upgrade)
    CONSTRAINTS.write_text(constraints(LOCK.read_text(), (ROOT / "pyproject.toml").read_text()))


if __name__ == "__main__":
    main()
