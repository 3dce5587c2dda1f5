from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from llmtrain.data.files import file_table
from llmtrain.data.table import AT_A_TIME


def opened(path):
    path = Path(path)
    return file_table(path, path.name, path.stem)


def test_parquet_gives_the_columns_that_are_asked_for(parquet, verl):
    path = parquet([verl(f"{i}?", str(i)) for i in range(10)])
    table = opened(path)
    assert (table.name, table.source, table.unit) == ("questions.parquet", "questions", "row")
    assert "reward_model.ground_truth" in table.columns
    found = list(table.rows(["reward_model.ground_truth"]))
    assert found == [(i + 1, {"reward_model": {"ground_truth": str(i)}}) for i in range(10)]


def test_rows_are_numbered_through_all_batches(tmp_path):
    n = AT_A_TIME + 5
    pq.write_table(pa.table({"question": [str(i) for i in range(n)]}), tmp_path / "a.parquet")
    found = list(opened(tmp_path / "a.parquet").rows(["question"]))
    assert [number for number, _ in found] == list(range(1, n + 1))
    assert found[-1][1] == {"question": str(n - 1)}


def test_lines_count_from_1_and_empty_ones_are_left_out(jsonl):
    table = opened(jsonl(['{"a": {"b": 1}}', "", "  ", '{"c": 2}']))
    assert table.unit == "line"
    assert table.columns == ["a", "a.b", "c"]
    assert list(table.rows([])) == [(1, {"a": {"b": 1}}), (4, {"c": 2})]


def test_columns_are_those_of_the_rows_that_are_objects(jsonl):
    deep = '{"a": ' * 900 + "1" + "}" * 900
    table = opened(jsonl(["no object", deep]))
    assert table.columns == [".".join("a" * n) for n in range(1, 6)]
    assert isinstance(next(table.rows([]))[1], ValueError)


def test_a_json_array(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(' [{"a": 1},\n 5]')
    table = opened(path)
    (first, second) = table.rows([])
    assert first == (1, {"a": 1})
    assert str(second[1]) == "expected an object, got int"
    path.write_text('{"a": 1}\n{"a": 2}\n')  # lines, under a name that many data sets give them
    assert [row for _, row in opened(path).rows([])] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_byte_order_mark(tmp_path, name):
    rows = '[{"a": 1},\n{"a": 2}]' if name == "a.json" else '{"a": 1}\n{"a": 2}'
    (tmp_path / name).write_text(rows, encoding="utf-8-sig")
    assert [row for _, row in opened(tmp_path / name).rows([])] == [{"a": 1}, {"a": 2}]


TWICE = pa.Table.from_arrays([pa.array(["1+1="]), pa.array(["2"]), pa.array(["3"])], ["question", "answer", "answer"])


@pytest.mark.parametrize(
    ("name", "held", "names"),
    [
        ("a.jsonl", '[{"a": 1}]', r", line 1: .*list; .*\.json$"),
        ("a.jsonl", "[\n1\n]", r", line 1: not JSON: .*; .*\.json$"),
        ("a.jsonl", '\n{"a": \n1\n', r", line 2: not JSON: .*\(char \d+\)$"),
        ("a.jsonl", "\n \n", " has no rows"),
        ("a.jsonl", "", " is empty"),
        ("a.json", "[1, 2]", ", row 1: .*int$"),
        ("a.json", "[1, ", ": not JSON"),
        ("a.tsv", "a,b", r": .*'\.tsv'; .*\.parquet, \.jsonl, \.json, \.csv"),
        ("a.parquet", "", " is empty"),
        ("a.parquet", TWICE, " .*'answer'.*rename"),
        ("a.parquet", pa.table({"question": pa.array([], pa.string())}), " has no rows"),
    ],
)
def test_a_refusal_names_the_file_and_what_is_wrong(tmp_path, name, held, names):
    path = tmp_path / name
    path.write_text(held) if isinstance(held, str) else pq.write_table(held, path)
    with pytest.raises(ValueError, match=f"{name}{names}"):
        opened(path)


def test_a_file_that_breaks_off_between_its_rows(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"question": [f"{i}?" for i in range(9)]}), path, row_group_size=3, write_page_checksum=True
    )
    data = path.read_bytes()
    place = pq.ParquetFile(path).metadata.row_group(1).column(0).dictionary_page_offset
    path.write_bytes(data[: place + 30] + bytes([data[place + 30] ^ 1]) + data[place + 31 :])
    with pytest.raises(ValueError, match=r"a\.parquet is broken from row 1 on: .*"):
        list(opened(path).rows(["question"]))
