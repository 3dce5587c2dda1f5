"""Labels of files with the same name that are read together."""

import os

import pytest

from llmtrain.data import labels, read
from llmtrain.data.tables import tables

ROW = [{"question": "1+1?", "answer": "2"}]


def called(*names, split="test"):
    """Return the data-set names in the rows of each file."""
    return [
        sorted({table.source for table in tables(name, split, label)})
        for name, label in zip(names, labels(names, split), strict=True)
    ]


def test_names_of_their_own_stay(jsonl):
    names = [jsonl(ROW, name) for name in ("g/sums.jsonl", "h/test.jsonl", "h/train.jsonl")]
    assert labels(names, "test") == ["", "", ""]
    assert labels(names[:1], "test") == [""]
    assert labels([], "test") == []


def test_files_of_one_name_are_told_apart_by_their_folders(jsonl):
    def of(*names):
        return [found for (found,) in called(*(jsonl(ROW, name) for name in names))]

    assert of("g/test.jsonl", "h/test.jsonl") == ["g", "h"]
    assert of("g/sums.jsonl", "h/sums.jsonl", "other.jsonl") == ["g/sums", "h/sums", "other"]
    assert of("a/g/test.jsonl", "b/g/test.jsonl") == ["a/g", "b/g"]
    assert of("a/g/test.jsonl", "h/test.jsonl", "g.jsonl") == ["a/g", "h", "g"]
    assert of("g/train-00000-of-00001.jsonl", "h/train-00000-of-00001.jsonl") == ["g", "h"]


def test_the_kind_tells_apart_what_folders_do_not(jsonl, tmp_path):
    one = jsonl(ROW, "g/sums.jsonl")
    other = jsonl(ROW, "g/sums.json")
    assert called(one, other) == [[one], [other]]


def test_folders(jsonl, tmp_path):
    for name in ("a/sums/test.jsonl", "a/sums/more.jsonl", "b/sums/test.jsonl", "c/more.jsonl"):
        jsonl(ROW, name)
    names = [str(tmp_path / name) for name in ("a/sums", "b/sums", "c/more.jsonl")]
    assert called(*names) == [["a/sums", "a/sums/more"], ["b/sums"], ["c/more"]]


def test_configurations_of_a_data_set_of_the_hub():
    assert labels(["acme/sums:a", "acme/sums:b", "acme/other"], "test") == ["acme/sums:a", "acme/sums:b", ""]


def test_a_file_twice(jsonl, tmp_path):
    name = jsonl(ROW, "g/test.jsonl")
    os.symlink(name, tmp_path / "link.jsonl")
    others = (name, f"{tmp_path}/g/../g/test.jsonl", str(tmp_path / "link.jsonl"), str(tmp_path / "g"))
    for one, other in (*((name, other) for other in others), ("acme/sums", "acme/sums")):
        with pytest.raises(ValueError, match=f"^{one} is given twice, by {one} and by {other}"):
            labels([one, other], "test")


def test_a_row_that_names_its_data_set_keeps_it(parquet, verl):
    path = parquet([verl("1+1?", "2", "sums")])
    (question,) = read(path, label="g").questions
    assert question.source == "sums"
    assert question.where == f"{path}, row 1"
