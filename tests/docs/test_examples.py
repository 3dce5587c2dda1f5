"""Every Python example of the README and of docs/ runs as it stands, those of a page one after the other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if BLOCK.search(page.read_text())]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the run that examples read."""
    from toybandit.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["run", "--env", "det", "--states", "8", "--rollouts", "60", "--out", "runs/countdown"]) == 0
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page, folder, monkeypatch):
    if page.stem == "trl":
        pytest.skip("examples/trl_countdown.py holds the same, and tests/common/test_integration_trl.py runs it")
    namespace = {"__name__": "example"}
    monkeypatch.syspath_prepend(str(folder))
    for code in BLOCK.findall(page.read_text()):
        if file := re.match(r"# (\w+\.py)\n", code):  # an example that others import by the name of its file
            (folder / file[1]).write_text(code[: code.index("\n\n\ncontroller = ")])
        exec(compile(code, str(page), "exec"), namespace)
