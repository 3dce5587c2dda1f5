import sys

import pytest

from llmtrain.data import read
from llmtrain.data.tables import tables


def rows(name, columns=("question",), split="train"):
    return [(table.name, number, row) for table in tables(str(name), split) for number, row in table.rows(columns)]


def only(name, split="train"):
    (table,) = tables(str(name), split)
    return table


def test_a_folder_of_shards_belongs_to_one_data_set(parquet, jsonl, tmp_path):
    for i in range(2):
        parquet([{"question": f"{i}?", "answer": "1"}], f"sums/data/train-0000{i}-of-00002.parquet")
    parquet([{"question": "held out", "answer": "1"}], "sums/data/test-00000-of-00001.parquet")
    jsonl([{"question": "other", "answer": "1"}], "sums/more.jsonl")
    (tmp_path / "sums" / "README.md").write_text("about")
    (tmp_path / "sums" / "dataset_infos.json").write_text("{}")
    train = list(tables(str(tmp_path / "sums")))
    shards = [f"sums/data/train-0000{i}-of-00002.parquet" for i in range(2)]
    assert [(t.name, t.source) for t in train] == [*((s, "sums") for s in shards), ("sums/more.jsonl", "more")]
    test = [t.name for t in tables(str(tmp_path / "sums"), "test")]
    assert test == ["sums/data/test-00000-of-00001.parquet", "sums/more.jsonl"]


def test_a_benchmark_whose_only_split_is_called_train(parquet, tmp_path):
    """As MathArena publishes HMMT, BRUMO and CMIMC; questions to test on are never trained on by mistake."""
    parquet([{"problem_idx": 1, "problem": "1+1?", "answer": "2"}], "hmmt25/data/train-00000-of-00001.parquet")
    (question,) = read(str(tmp_path / "hmmt25"), split="test").questions
    assert (question.text, question.ground_truth, question.source) == ("1+1?", "2", "hmmt25")


def test_a_split_that_a_folder_lacks(parquet, tmp_path):
    parquet([{"a": 1}], "sums/train.parquet")
    parquet([{"a": 1}], "sums/val/x.parquet")
    for split in ("validation", "val"):
        assert [t.name for t in tables(str(tmp_path / "sums"), split)] == ["sums/val/x.parquet"]
    parquet([{"a": 1}], "held/test.parquet")
    for folder, split, has in (("sums", "test", "train, validation"), ("held", "train", "test")):
        with pytest.raises(ValueError, match=rf"{folder} .*'{split}'.* {has}$"):
            only(tmp_path / folder, split)


def test_what_datasets_saved(tmp_path):
    from datasets import Dataset, DatasetDict

    def made(n):
        return Dataset.from_list([{"extra": {"a": str(i), "b": 0}, "question": f"{i}?"} for i in range(n)])

    made(3).save_to_disk(str(tmp_path / "one"))
    DatasetDict({"train": made(2), "test": made(1)}).save_to_disk(str(tmp_path / "both"))
    (name, number, row) = rows(tmp_path / "one", ["extra.a", "question"])[2]
    assert (name, number) == (str(tmp_path / "one"), 3)
    assert (row["extra"]["a"], row["question"]) == ("2", "2?")
    assert len(rows(tmp_path / "both", ["question"])) == 2
    assert len(rows(tmp_path / "both", ["question"], split="test")) == 1
    (tmp_path / "one" / "state.json").write_text("{")
    for folder, split, names in (("both", "dev", "'dev'.* train, test$"), ("one", "train", "saved data set")):
        with pytest.raises(ValueError, match=rf"{folder} .*{names}"):
            rows(tmp_path / folder, split=split)


class Hub:
    """Fake `datasets` library with one data set, which records its calls."""

    def __init__(self, held):
        self.held, self.asked = held, None

    def load_dataset(self, name, config, split):
        self.asked = (name, config, split)
        if name != "acme/sums":
            raise ConnectionError("no network\nat all")
        return self.held


def test_a_name_on_the_hub(monkeypatch):
    from datasets import Dataset

    hub = Hub(Dataset.from_list([{"question": "1+1?", "answer": "2"}]))
    monkeypatch.setitem(sys.modules, "datasets", hub)
    table = only("acme/sums:main", "test")
    assert hub.asked == ("acme/sums", "main", "test")
    assert (table.name, table.source) == ("acme/sums:main", "acme/sums")
    assert list(table.rows(["answer"])) == [(1, {"answer": "2"})]
    with pytest.raises(ValueError, match=r"ConnectionError: no network at all$"):
        only("acme/other")
    assert hub.asked == ("acme/other", None, "train")
    hub.held = hub.held.select([])
    with pytest.raises(ValueError, match="acme/sums has no rows"):
        only("acme/sums")


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=r"datasets.*pip install"):
        only("acme/sums")


def test_names_of_nothing(tmp_path):
    missing = [(name, "not exist") for name in (tmp_path / "nowhere.parquet", "/a/b/c", "a b", "gsm8k")]
    for name, names in (*missing, (tmp_path, "no file")):
        with pytest.raises(ValueError, match=f"{name} .*{names}"):
            only(name)
