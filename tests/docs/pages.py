"""Blocks and commands of the README and of docs/, for the tests that run or read them."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")), *TUTORIALS]
BLOCK = re.compile(r"^```(\w*)(?: title=\"[^\"]*\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    ((?:llmtrain|toybandit|entrostat|python) .*)$", re.MULTILINE)
"""Commands of generated pages, which are indented."""
OURS = ("llmtrain", "toybandit", "entrostat", "entrostat-app")
MAINS = {
    "llmtrain": "llmtrain.cli",
    "toybandit": "toybandit.cli",
    "entrostat": "entrostat_app.entrostat_command",
    "entrostat-app": "entrostat_app.launch",
}
OTHERS = ("make", "pip", "python", "torchrun", "sbatch", "kubectl", "examples/ray_job.sh", "export")
PICTURE = re.compile("[►│▼└]")
OUTPUTS = {"plan.md": ("$ llmtrain plan", "Qwen3-8B-Base on 64 H20"), "trainer.md": ("train  a built model",)}
"""Starts of outputs by page, which test_plan.py and test_display.py compare with the programs'."""


def command_lines(text: str) -> list[str]:
    """Return the commands of a block, each in one line without what is said about it."""
    lines = re.sub(r" *\\\n +", " ", text).splitlines()
    return [re.split(r" {2,}| # ", line)[0].removeprefix(".venv/bin/") for line in lines if line.strip()]


def kind(page: Path, language: str, text: str) -> str:
    """Return the kind of a block; empty if it is none that is known."""
    if language == "python" or (language == "sh" and page in TUTORIALS):
        return "run"
    if language in ("yaml", "toml"):
        return "data"
    if "verl.trainer.main_ppo" in text:
        return "verl"
    if (language == "text" and page in TUTORIALS) or text.startswith(OUTPUTS.get(page.name, "\0")):
        return "output"
    if PICTURE.search(text):
        return "picture"
    if all(line.split()[0] in OURS + OTHERS for line in command_lines(text)):
        return "commands"
    return ""


BLOCKS = [(page, language, text) for page in PAGES for language, text in BLOCK.findall(page.read_text())]
COMMANDS = [(page.name, line) for page in PAGES for line in INDENTED.findall(BLOCK.sub("", page.read_text()))]
COMMANDS += [
    (page.name, line)
    for page, language, text in BLOCKS
    if kind(page, language, text) == "commands"
    for line in command_lines(text)
]


def our_words(line: str) -> list[str]:
    """Return the words of a command from our program on, without dots that stand for more; empty if it calls none."""
    words = [word for word in shlex.split(line) if word != "..."]
    if words[0] == "torchrun":
        words = words[words.index("-m") + 1 :]
    if words[:3] == ["python", "-m", "entrostat"]:
        words = words[2:]
    for end in ("|", "&&", ">", ">>"):
        words = words[: words.index(end)] if end in words else words
    return words if words[0] in OURS else []


CALLS = sorted({(name, line) for name, line in COMMANDS if our_words(line)})
