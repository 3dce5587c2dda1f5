import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtrain.data import Question, read
from llmtrain.data.write import write

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)
MESSAGE = st.builds(lambda role, content: {"role": role, "content": content}, st.sampled_from(["system", "user"]), TEXT)


def questions(prompts, truths):
    made = st.builds(Question, prompts, truths, TEXT, st.none() | TEXT, st.integers(1, 3))
    return st.lists(made, min_size=1, max_size=6, unique_by=lambda q: (q.source, repr(q.prompt)))


def plain(found):
    return [(q.prompt, q.ground_truth, q.source, q.solution, q.repeats) for q in found]


@given(
    questions(TEXT, st.integers(-(2**60), 2**60))
    | questions(st.lists(MESSAGE, min_size=1, max_size=3).map(tuple), TEXT.filter(lambda t: "#" not in t))
)
def test_questions_read_back_as_they_were(tmp_path_factory, made):
    path = tmp_path_factory.getbasetemp() / "round.parquet"
    write(made, path)
    assert plain(read(str(path)).questions) == plain(made)


OBJECTS = [Question("a", {"x": 1}, "s"), Question("b", {"y": 2}, "s", where="f, row 7")]


@pytest.mark.parametrize(
    ("made", "names"),
    [
        ([Question("a", "1", "s"), Question(({"role": "user", "content": "b"},), "2", "s")], r"a\.parquet"),
        (OBJECTS, "reading it back"),
        ([Question("a", 1, "s", where="f, row 3"), Question("b", 2.5, "s")], "f, row 3: reading it back"),
        ([Question("a", {"x": [1]}, "s"), Question("b", {"x": [0.5]}, "s")], "reading it back"),
        ([Question("a", 10**20, "s"), Question("b", 2, "s")], r"a\.parquet"),
        ([Question("a", {1, 2}, "s")], r"a\.parquet"),
        ([], r"a\.parquet"),
    ],
)
def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path, made, names):
    path = tmp_path / "a.parquet"
    path.write_text("before")
    with pytest.raises(ValueError, match=names):
        write(made, path)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]


def test_the_name_ends_in_parquet(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.parquet"):
        write([Question("a", "1", "s")], tmp_path / "a.jsonl")
