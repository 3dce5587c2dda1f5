"""Time from an empty environment to the demo's pictures, separately for installation and demo.

    python benchmarks/install.py

Prints seconds and MiB of the installation for `make demo`, seconds from the start of the demo to its first and last
picture, and seconds and MiB added for the tests. Downloads are included; a warm pip cache shortens them.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def seconds(words: list[str], cwd: Path = ROOT) -> float:
    """Run a command to its end, and return its seconds. Raises CalledProcessError if it fails."""
    began = time.monotonic()
    subprocess.run(words, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def mib(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 2**20


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        venv = Path(name, "venv")
        make = ["make", f"VENV={venv}", "TORCH=cpu", f"PYTHON={sys.executable}"]
        took = seconds([*make, f"{venv}/.installed-cpu-train"])
        small = mib(venv)
        print(f"installation for the demo   {took:6.0f} s  {small:6.0f} MiB", flush=True)
        began, pictures = time.monotonic(), []
        demo = subprocess.Popen(
            [f"{venv}/bin/python", "-u", "-m", "llmtrain", "demo"], cwd=name, stdout=subprocess.PIPE, text=True
        )
        assert demo.stdout
        for line in demo.stdout:
            if re.search(r"entropy\.png", line):
                pictures.append(time.monotonic() - began)
        demo.wait()
        print(f"demo: first picture         {pictures[0]:6.0f} s")
        print(f"demo: last picture          {pictures[-1]:6.0f} s", flush=True)
        took = seconds([*make, f"{venv}/.installed-cpu-dev"])
        print(f"added for the tests         {took:6.0f} s  {mib(venv) - small:6.0f} MiB")


if __name__ == "__main__":
    main()
