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
    with pytest.raises(ValueError, match=re.escape(message)):
        foreign_runs.read_path(log)
