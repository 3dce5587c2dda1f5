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


def test_a_log_of_a_declared_kind_is_read(distribution, tmp_path):
    log = tmp_path / "run.txt"
    log.write_text(LINES)
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
def test_what_is_no_kind_is_named(distribution, tmp_path, entry, message):
    log = tmp_path / "run.txt"
    log.write_text(LINES)
    distribution("example", f"[entrostat.logs]\nname_value = {entry}\n", plug_reader=EXAMPLE.read_text())
    with (
        pytest.warns(UserWarning, match=re.escape(message)),
        pytest.raises(ValueError, match="is no log that can be read"),
    ):
        foreign_runs.read_path(log)


def test_a_broken_plug_in_does_not_stop_other_logs(distribution, tmp_path):
    """dask/dask#10379, datachain-ai/datachain#1904, conan-io/conan#11702."""
    log = tmp_path / "run.jsonl"
    log.write_text('{"step": 1, "entropy": 0.5}\n{"step": 2, "entropy": 0.4}\n')
    distribution("example", "[entrostat.logs]\nname_value = plug_reader:absent\n", plug_reader="")
    with pytest.warns(UserWarning, match="'name_value' of the distribution example cannot be imported"):
        (run,) = foreign_runs.read_path(log)
    assert [line["entropy"] for line in run.metrics] == [0.5, 0.4]
