"""Kinds of log that installed distributions declare."""

import re
from pathlib import Path

import pytest

from entrostat.logs.foreign import foreign_runs

EXAMPLE = Path(__file__).parents[3] / "docs/examples/plugin/entrostat_example/reader.py"
LINES = "step=1 H=0.5 R=0\nstep=2 H=0.4 R=1\nend\n"


@pytest.fixture(autouse=True)
def anew():
    foreign_runs._plugged.cache_clear()
    yield
    foreign_runs._plugged.cache_clear()


@pytest.fixture
def log(tmp_path):
    """Log of the kind that the example declares."""
    path = tmp_path / "run.txt"
    path.write_text(LINES)
    return path


@pytest.fixture
def known(tmp_path):
    """Log of a built-in kind."""
    path = tmp_path / "run.jsonl"
    path.write_text('{"step": 1, "entropy": 0.5}\n{"step": 2, "entropy": 0.4}\n')
    return path


def test_a_log_of_a_declared_kind_is_read(distribution, log):
    assert foreign_runs.runs_in(log.open("rb")) == []
    foreign_runs._plugged.cache_clear()
    distribution("example", "[entrostat.logs]\nname_value = plug_reader:KIND\n", plug_reader=EXAMPLE.read_text())
    (run,) = foreign_runs.read_path(log)
    assert run.source == "lines of name=value"
    assert [(line["step"], line["entropy"], line["reward"]) for line in run.metrics] == [(1, 0.5, 0.0), (2, 0.4, 1.0)]
    assert run.notes == ("1 lines without a readable step are left out",)
    assert foreign_runs.runs_in(log.open("rb")) == [""]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("plug_reader:read", "kind of log 'name_value' of the distribution example is a function, not an entrostat"),
        ("plug_reader:absent", "kind of log 'name_value' of the distribution example cannot be imported"),
    ],
)
def test_what_is_no_kind_is_named(distribution, log, entry, message):
    distribution("example", f"[entrostat.logs]\nname_value = {entry}\n", plug_reader=EXAMPLE.read_text())
    with (
        pytest.warns(UserWarning, match=re.escape(message)),
        pytest.raises(ValueError, match="is no log that can be read"),
    ):
        foreign_runs.read_path(log)


def test_a_broken_plug_in_does_not_stop_other_logs(distribution, known):
    """dask/dask#10379, datachain-ai/datachain#1904, conan-io/conan#11702."""
    distribution("example", "[entrostat.logs]\nname_value = plug_reader:absent\n", plug_reader="")
    (run,) = foreign_runs.read_path(known)
    assert [line["entropy"] for line in run.metrics] == [0.5, 0.4]


READER = """
from entrostat.logs.foreign.foreign_runs import Kind
from entrostat.logs.foreign.rows import Row

def fits(head):
    return {fits}

def read(file):
    {read}

KIND = Kind("of mine", fits, read)
"""


@pytest.mark.parametrize(
    ("read", "message"),
    [
        ("yield Row('', 1, {'a': {}['entropi']})", "KeyError: 'entropi' (plug_reader.py, line 9)"),
        ("yield {'step': 1}", "TypeError: its reader yields a dict, not a Row(run, step, metrics)"),
        ("return None", "TypeError: 'NoneType' object is not iterable"),
        ("yield Row('', '3', {'a': 1.0})", "its reader yields text, where steps and metrics are numbers"),
        ("yield Row('', 3, {'a': '1.0'})", "its reader yields text, where steps and metrics are numbers"),
    ],
)
def test_mistakes_of_a_reader_are_told_as_its_own(distribution, log, read, message):
    text = READER.format(fits="b'H=' in head", read=read)
    distribution("example", "[entrostat.logs]\nmine = plug_reader:KIND\n", plug_reader=text)
    with pytest.raises(ValueError, match=re.escape(message)) as found:
        foreign_runs.read_path(log)
    assert "kind of log 'mine' of the distribution example" in str(found.value)


@pytest.mark.parametrize("fits", ["True", "head.startswith('#')"])
def test_a_built_in_kind_is_read_as_before(distribution, known, tmp_path, fits):
    """By a plug-in that claims every file, and by one that fails on all."""
    text = READER.format(fits=fits, read="yield Row('', 1, {'a': 1.0})")
    distribution("example", "[entrostat.logs]\nmine = plug_reader:KIND\n", plug_reader=text)
    (run,) = foreign_runs.read_path(known)
    assert run.source == "lines of JSON, as verl's"
    (tmp_path / "else.txt").write_text("something\n")
    if fits != "True":
        with (
            pytest.warns(UserWarning, match="cannot tell its files: TypeError"),
            pytest.raises(ValueError, match="mine"),
        ):
            foreign_runs.read_path(tmp_path / "else.txt")
