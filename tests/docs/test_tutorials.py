"""Every tutorial runs as it stands and prints what its page shows; pictures are made."""

import contextlib
import importlib.util
import io
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("tutorials", ROOT / "docs/tutorials.py")
assert SPEC is not None
assert SPEC.loader is not None
tutorials = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tutorials)
TRAINERS = {"trl": "trl", "tools": "trl", "verl": "verl"}
"""Packages that a page needs beside ours."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    # those of other trainers run from the wheel too, each time it is built (tests/install/wheel.py)
    [pytest.param(page, marks=[pytest.mark.long] * (page.stem in TRAINERS)) for page in tutorials.PAGES],
    ids=lambda page: page.stem,
)
def test_a_page_shows_what_it_prints(page, own_controllers, own_claims):
    pytest.importorskip(TRAINERS.get(page.stem, "torch"))
    text = page.read_text()
    with tutorials.empty_folder() as folder:
        assert tutorials.run_page(text, anew=False) == text
        pictures = {path.name for path in folder.glob("*.png")}
    assert pictures == set(re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text))


@pytest.mark.parametrize("page", tutorials.NOTEBOOKS)
def test_a_notebook_is_its_page(page):
    """Rewritten by: python docs/tutorials.py --update docs/tutorials/PAGE.md"""
    file = ROOT / f"docs/tutorials/{page}.md"
    text = file.read_text(encoding="utf-8")
    written = file.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert written == tutorials.notebook(text, tutorials.NOTEBOOKS[page])
    code = ["".join(cell["source"]) for cell in json.loads(written)["cells"] if cell["cell_type"] == "code"]
    blocks = list(tutorials.BLOCK.finditer(text))
    assert code[1:] == [block["code"].rstrip() for block in blocks]
    assert {block["kind"] for block in blocks} == {"python"}


@pytest.mark.long
@pytest.mark.parametrize("page", tutorials.NOTEBOOKS)
def test_a_notebook_prints_its_outputs(page):
    """Its cells in order, in one namespace, as Jupyter runs them; only the first, the installation, is left out."""
    cells = json.loads((ROOT / f"docs/tutorials/{page}.ipynb").read_text(encoding="utf-8"))["cells"]
    namespace = {"__name__": "__main__"}
    first, *code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert "".join(first["source"]).startswith("%pip install")
    assert any(cell["outputs"] for cell in code)
    with tutorials.empty_folder():
        for cell in code:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec("".join(cell["source"]), namespace)
            assert printed.getvalue() == "".join(text for output in cell["outputs"] for text in output["text"])


def test_pictures_and_links_of_a_page_are_not_in_its_notebook():
    page = "See [it](../theory.md#a) and [b](b.md), [c](https://c).\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n![P](p.png)\n"
    cells = json.loads(tutorials.notebook(page, "%pip"))["cells"]
    assert ["".join(cell["source"]) for cell in cells] == [
        "%pip",
        "See it (`docs/theory.md`) and b (`docs/tutorials/b.md`), [c](https://c).",
        "print(1)",
    ]
    assert cells[2]["outputs"] == [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}]


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
