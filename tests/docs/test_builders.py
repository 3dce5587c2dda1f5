"""Files for those who build it agree with the project: versions, commands, links."""

import re
from pathlib import Path

import pytest
import yaml

import entrostat

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def test_the_changelog_begins_with_this_version():
    assert re.search(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == entrostat.__version__


def test_the_citation_has_this_version_and_the_five_papers():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == entrostat.__version__
    assert len({paper["title"] for paper in cited["references"]}) == 5
    assert all(paper["authors"] for paper in cited["references"])


def test_hooks_run_the_locked_ruff_and_the_mypy_of_make_lint():
    ruff, local = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert f"ruff=={ruff['rev'].removeprefix('v')}\n" in (ROOT / "constraints.txt").read_text()
    (mypy,) = local["hooks"]
    assert (mypy["entry"], mypy["pass_filenames"]) == (".venv/bin/mypy", False)  # the whole project, as `make lint`


def test_the_workflow_runs_what_ci_runs():
    (job,) = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"].values()
    assert job["steps"][-1] == {"run": ".ci/run"}


def test_the_workflow_of_versions_runs_every_combination():
    (job,) = yaml.safe_load((ROOT / ".github/workflows/compatibility.yml").read_text())["jobs"].values()
    script = (ROOT / "tests/install/matrix.py").read_text()
    versions = re.findall(r'^    "(\w+)": \[', script, re.MULTILINE)
    classifiers = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert job["strategy"]["matrix"] == {"python": classifiers, "versions": versions}
    last = "python tests/install/matrix.py --python ${{ matrix.python }} --versions ${{ matrix.versions }}"
    assert job["steps"][-1] == {"run": last}


def test_long_tests_run_every_week():
    workflow = yaml.safe_load((ROOT / ".github/workflows/long.yml").read_text())
    assert workflow[True]["schedule"]  # YAML 1.1 reads the key `on` as true
    assert workflow["jobs"]["long"]["steps"][-1] == {"run": "make test-long"}


def test_targets_of_make_are_there():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+(?:-[a-z]+)*)`", (ROOT / "CONTRIBUTING.md").read_text())) <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_and_headings_lead_there(page):
    for target, heading in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
        there = page.parent / target if target else page
        assert there.exists(), target
        if heading and there.suffix == ".md":
            assert heading in headings(there), f"{target}#{heading}"


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-") for heading in found}
