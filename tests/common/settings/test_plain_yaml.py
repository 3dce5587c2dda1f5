import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from entrostat.settings.plain_yaml import dump_yaml, load_yaml, parse_yaml

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
WORDS = st.sampled_from(["on", "1e-4", "010", "true", "Null", "~", "1:30", "2026-01-01", ".5", "1_000", ".inf", "<<"])


def test_words_are_what_they_look_like():
    text = (
        "env: on\nlr: 1e-4\nday: 2026-01-01\nnested: True\nnothing:\nempty: ~\nlimit: .inf\nn: -3\ntime: 1:30\np: -.5\n"
    )
    assert parse_yaml(text) == {
        "env": "on",
        "lr": 1e-4,
        "day": "2026-01-01",
        "nested": True,
        "nothing": None,
        "empty": None,
        "limit": float("inf"),
        "n": -3,
        "time": "1:30",
        "p": -0.5,
    }


def test_more_ways_to_write_numbers_and_mappings():
    assert parse_yaml("a: .Inf\nb: -.INF\nc: 0x1F\nd: 0\n") == {"a": float("inf"), "b": -float("inf"), "c": 31, "d": 0}
    assert parse_yaml("base: &base {a: 1, b: 2}\nmine: {<<: *base, b: 3}\n")["mine"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    "text", ["lr: 1\nbetas: 2\nlr: 3", "{optim: {lr: 1}, optim: {betas: 2}}", "a: {lr: 1, 'lr': 2}"]
)
def test_a_key_that_is_set_twice_is_named(text):
    with pytest.raises(ValueError, match=r"(lr|optim) is set twice"):
        parse_yaml(text)


@pytest.mark.slow
@given(st.dictionaries(st.text(), PLAIN | WORDS | st.lists(PLAIN | WORDS)))
def test_what_is_written_is_read_by_either_version(values):
    text = dump_yaml(values)
    assert parse_yaml(text) == values
    assert yaml.safe_load(text) == values


@pytest.mark.parametrize("text", ["a: [", "!!bool foo", "[" * 5000, "!!python/object:os.system {}", "a: \x00"])
def test_what_is_no_yaml_is_said_in_a_line(text):
    with pytest.raises(ValueError, match=r"^is not plain YAML: [^\n]+$"):
        parse_yaml(text)


def test_files(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("")
    assert load_yaml(file) == {}
    file.write_text("a: [")
    with pytest.raises(ValueError, match=rf"^{file} is not plain YAML"):
        load_yaml(file)
    file.write_bytes(b"a: \xff")
    with pytest.raises(ValueError, match=rf"^{file} is not text in UTF-8"):
        load_yaml(file)
    with pytest.raises(ValueError, match=rf"^{tmp_path}: Is a directory"):
        load_yaml(tmp_path)
    with pytest.raises(ValueError, match=r"none\.yaml: No such file"):
        load_yaml(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "text", ["[" * 10_000, "{" * 10_000, "- " * 5_000, "\n".join(" " * i + "a:" for i in range(140))]
)
def test_deep_nesting_is_refused_by_its_depth_and_soon(text):
    start = time.process_time()
    with pytest.raises(ValueError, match=r"^is not plain YAML: nested too deeply"):
        parse_yaml(text)
    assert time.process_time() - start < 5


def test_forty_levels_are_read():
    assert parse_yaml("[" * 40 + "]" * 40)
