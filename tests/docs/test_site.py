"""The site builds without a warning; its pages of commands and of troubleshooting agree with the programs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from llmtrain.cli import COMMANDS

ROOT = Path(__file__).parents[2]
SOURCE = "\n".join(path.read_text() for path in sorted((ROOT / "packages").rglob("*.py")))


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    site = tmp_path / "site"
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    commands = (site / "commands/index.html").read_text()
    assert "<!-- help" not in commands
    assert "--controller" in commands
    assert "Tokens" in (site / "reference/entrostat/index.html").read_text()
    live = (site / "live/index.html").read_text()
    for address in re.findall(r'src="\.\./(published/[^"]+)"', live):
        assert (site / address).stat().st_size > 10_000
    assert live.count("<iframe") == 3
    assert (site / "index.html").read_text().count('<iframe src="published/playground/index.html"') == 1


def test_a_fold_holds_its_section_and_nothing_is_lost():
    sys.path.insert(0, str(ROOT / "docs"))
    from folds import folded

    html = "<h1>A</h1>\n<p>a</p><h2 id='b'>B</h2><p>b</p><h3>C</h3><p>c</p>\n<h2>D</h2>"
    found = folded(html, 2)
    assert found.count("<details") == found.count("</details>") == 1
    assert "<summary><h2 id='b'>B</h2></summary><p>b</p><h3>C</h3><p>c</p>" in found
    assert re.sub(r'</?(details|summary)( class="fold")?>', "", found).split() == html.split()


def test_every_command_is_on_its_page():
    page = (ROOT / "docs/commands.md").read_text()
    assert re.findall(r"^### llmtrain (\S+)$", page, re.MULTILINE) == list(COMMANDS)


def messages() -> list[str]:
    """Return the messages that the troubleshooting page quotes."""
    rows = re.findall(r"^\| (.+?) \|", (ROOT / "docs/troubleshooting.md").read_text(), re.MULTILINE)
    quoted = [text for row in rows for text in re.findall(r"`([^`]+)`", row) if " " in text]
    return [text for text in quoted if not text.startswith(("make ", "import ", "gradient ", "killed "))]


@pytest.mark.parametrize("message", messages())
def test_a_message_of_the_troubleshooting_page_is_one_of_the_programs(message):
    assert message.removesuffix(": choose another --out, or remove it") in SOURCE


def test_settings_of_the_troubleshooting_page_exist():
    from llmtrain.settings.config import TrainConfig
    from llmtrain.settings.nested import to_dict

    known = {f"{name}.{key}" for name, part in to_dict(TrainConfig()).items() if isinstance(part, dict) for key in part}
    page = (ROOT / "docs/troubleshooting.md").read_text()
    named = set(re.findall(r"`((?:model|optim|rollout|engine|guard)\.[a-z_]+)`", page))
    assert named
    assert named <= known
