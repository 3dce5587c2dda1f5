"""Tables in Markdown: which are runs, their names, and what is passed over."""

import pytest

from entrostat.logs.foreign.foreign_runs import read_path


@pytest.fixture
def runs(tmp_path):
    """A function that reads a text as a file of notes: name and metrics of each run."""

    def read(text):
        path = tmp_path / "notes.md"
        path.write_text(text, encoding="utf-8")
        return {run.name: run.metrics for run in read_path(path)}

    return read


def table(*rows, names="step | entropy"):
    return "\n".join([f"| {names} |", "|" + "---|" * len(names.split("|")), *(f"| {row} |" for row in rows)]) + "\n"


def test_a_table_without_steps_is_passed_over(runs):
    settings = table("lr | 1e-6", "seed | 3", names="setting | value")
    found = runs(f"# Notes\n\n{settings}\n## Log\n\n{table('1 | .9', '2 | .5')}\nIt fell.\n")
    assert found == {"": [{"step": 1, "entropy": 0.9}, {"step": 2, "entropy": 0.5}]}


def test_runs_have_the_names_of_their_headings(runs):
    one, other = table("1 | .9"), table("1 | .8")
    assert [*runs(f"## A ##\n{one}\n### B, KL .1\n{other}")] == ["A", "B, KL .1"]
    assert [*runs(f"text\n\n{one}\n{other}")] == ["table (1)", "table (2)"]
    assert [*runs(f"## A\n{one}\n{other}")] == ["A (1)", "A (2)"]
    assert [*runs(f"## A\n{one}## B\n{other}")] == ["A", "B"]  # a heading may follow a table without a blank line


def test_comments_in_code_are_no_headings(runs):
    code = "```python\n# train\nrun()\n```\n"
    assert [*runs(f"## A\n{code}{table('1 | .9')}\n## B\n{table('1 | .8')}")] == ["A", "B"]


def test_cells_as_people_write_them(runs):
    rows = ("**1** | `1.9` | 60%", "5,120 | \u22120.5 | \u2014", "6000 | 1.5 | 12.5 %")
    (found,) = runs("# Log\n" + table(*rows, names="Step | **Loss** | Val Acc")).values()
    assert found == [
        {"step": 1, "loss": 1.9, "Val Acc": 0.6},
        {"step": 5120, "loss": -0.5},
        {"step": 6000, "loss": 1.5, "Val Acc": 0.125},
    ]


def test_spans_of_steps_are_not_steps(runs):
    with pytest.raises(ValueError, match="no metrics"):
        runs("# Phases\n" + table("1-100 | 0.7-0.8", "300+ | rises"))


def test_a_rule_needs_as_many_cells_as_the_header(runs):
    with pytest.raises(ValueError, match="is no log that can be read"):
        runs("# Notes\n| step | entropy |\n|---|\n| 1 | .9 |\n")
