"""Every tutorial runs as it stands and prints what its page shows; pictures are made."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("tutorials", ROOT / "docs/tutorials.py")
assert SPEC is not None
assert SPEC.loader is not None
tutorials = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tutorials)
TRAINERS = {"trl": "trl", "verl": "verl"}
"""Packages that a page needs beside ours."""


@pytest.mark.slow
@pytest.mark.parametrize("page", tutorials.PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_it_prints(page, own_controllers):
    pytest.importorskip(TRAINERS.get(page.stem, "torch"))
    text = page.read_text()
    with tutorials.empty_folder() as folder:
        assert tutorials.run_page(text, anew=False) == text
        pictures = {path.name for path in folder.glob("*.png")}
    assert pictures == set(re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text))


def test_what_blocks_print_is_put_below_them():
    page = 'a\n\n```python title="own.py"\nX = 2\n```\n\n```python\nfrom own import X\nprint(X + 1)\n```\n\n'
    page += "```sh\necho here; cat own.py\n```\n\n```text\nstale\n```\n\nb\n\n```yaml\nx: 1\n```\n"
    with tutorials.empty_folder():
        after = tutorials.run_page(page)
    shown = page.replace("print(X + 1)\n```\n", "print(X + 1)\n```\n\n```text\n3\n```\n").replace(
        "stale", "here\nX = 2"
    )
    assert after == shown


@pytest.mark.parametrize(("printed", "stays"), [("loss  12.5\nat step 40", True), ("loss nan at step 40", False)])
def test_of_one_run_only_numbers_may_differ(printed, stays):
    page = f'```python\nprint({printed!r})\n```\n\n```text title="one run"\nloss 0.25\nat step 3\n```\n'
    with tutorials.empty_folder():
        assert (tutorials.run_page(page, anew=False) == page) is stays
        assert tutorials.run_page(page) == page.replace("loss 0.25\nat step 3", printed)


def test_a_command_that_fails_is_said():
    with tutorials.empty_folder(), pytest.raises(RuntimeError, match="exit code 3 of\nexit 3"):
        tutorials.run_page("```sh\nexit 3\n```\n")
