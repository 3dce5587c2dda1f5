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


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.Table.from_arrays(
        [pa.array(["1+1="]), pa.array(["2"]), pa.array(["3"])], ["question", "answer", "answer"]
    )
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet has several columns called 'answer': rename"):
        opened(tmp_path / "a.parquet")


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
    path.write_text("[1, ")
    with pytest.raises(ValueError, match=r"a\.json: not JSON"):
        opened(path)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_byte_order_mark(tmp_path, name):
    rows = '[{"a": 1},\n{"a": 2}]' if name == "a.json" else '{"a": 1}\n{"a": 2}'
    (tmp_path / name).write_text(rows, encoding="utf-8-sig")
    assert [row for _, row in opened(tmp_path / name).rows([])] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '[{"a": 1}]', r"line 1: expected an object, got list; rename a file with one array to \.json"),
        ("a.jsonl", "[\n1\n]", r"line 1: not JSON: .*; rename a file with one array to \.json"),
        ("a.jsonl", '\n{"a": \n1\n', r"line 2: not JSON: .*\(char \d+\)"),
        ("a.json", "[1, 2]", "row 1: expected an object, got int"),
    ],
)
def test_a_file_without_a_row_that_can_be_read(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=rf"a\.jsonl?, {said}$"):
        opened(tmp_path / name)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "a.tsv").write_text("a,b")
    with pytest.raises(
        ValueError, match=r"a\.tsv: unknown file type '\.tsv'; choose from \.parquet, \.jsonl, \.json, \.csv"
    ):
        opened(tmp_path / "a.tsv")
    for kind in ("parquet", "jsonl"):
        (tmp_path / f"b.{kind}").write_bytes(b"")
        with pytest.raises(ValueError, match=rf"b\.{kind} is empty"):
            opened(tmp_path / f"b.{kind}")
    (tmp_path / "c.jsonl").write_text("\n \n")
    pq.write_table(pa.table({"question": pa.array([], pa.string())}), tmp_path / "d.parquet")
    for name in ("c.jsonl", "d.parquet"):
        with pytest.raises(ValueError, match=f"{name} has no rows"):
            opened(tmp_path / name)


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
