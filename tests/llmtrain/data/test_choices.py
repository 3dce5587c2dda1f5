"""Multiple choice: rows as the hubs publish them, letters, and the order of options."""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtrain.data import read
from llmtrain.data.choices import shuffled
from llmtrain.verifiers.math.math_answer import check

GPQA = ("Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def pro(options, index, question="Which one?"):
    letter = "ABCDEFGHIJ"[index] if index < 10 else "?"
    return {"question_id": 1, "question": question, "options": options, "answer": letter, "answer_index": index}


def option(question, letter):
    """The text of the option with a letter."""
    (line,) = (line for line in question.text.splitlines() if line.startswith(f"{letter}) "))
    return line[3:]


def test_mmlu_pro(parquet):
    rows = [pro([f"{q}{i}" for i in range(n)], q % n, f"Which {q}?") for q, n in enumerate((10, 4, 2, 10))]
    found = read(parquet(rows)).questions
    assert [option(q, q.ground_truth) for q in found] == [f"{q}{q % n}" for q, n in enumerate((10, 4, 2, 10))]
    assert found[1].text.splitlines()[:2] == ["Which 1?", ""]
    assert [line[:3] for line in found[1].text.splitlines()[2:]] == ["A) ", "B) ", "C) ", "D) "]


def test_gpqa_as_csv_with_lines_and_quotes_in_cells(tmp_path):
    path = tmp_path / "gpqa_diamond.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Record ID", *GPQA])
        writer.writerow(["r1", 'What, "exactly",\nis it?', "42", "41", "43", "44"])
        writer.writerow(["r2", "And this?", "x", "y", "", "z"])
    (question,), skipped = read(str(path), skip_bad=True)
    assert question.text.startswith('What, "exactly",\nis it?\n\nA) ')
    assert option(question, question.ground_truth) == "42"
    assert question.source == "gpqa_diamond"
    assert skipped == ["gpqa_diamond.csv, row 2: column 'Incorrect Answer 2' has no text"]


@given(st.text(), st.lists(st.text(min_size=1), min_size=2, max_size=10, unique=True), st.integers(0, 9), st.randoms())
def test_the_order_is_that_of_the_options_not_of_the_file(text, options, seed, random):
    other = random.sample(options, len(options))
    orders = [[some[i] for i in shuffled(text, some, seed)] for some in (options, other)]
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == sorted(options)


def test_seeds_and_questions_have_orders_of_their_own(parquet):
    path = parquet([pro(list("stuvwxyz"), 3, f"Which {i}?") for i in range(40)])
    letters = [[q.ground_truth for q in read(path, choice_seed=seed).questions] for seed in (0, 0, 1)]
    assert letters[0] == letters[1] != letters[2]
    assert len(set(letters[0])) > 4


@pytest.mark.parametrize(
    "response", ["so \\boxed{C}", "Answer: C", "The answer is (C).", "\\boxed{\\text{C}}", "#### C"]
)
def test_math_judges_letters(response):
    assert [check(response, letter).correct for letter in "ACD"] == [False, True, False]


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        *(
            ("a.jsonl", json.dumps(row), rf"^a\.jsonl, line 1: column '{column}' {names}")
            for row, column, names in (
                (pro(["a", "b"], 2), "answer_index", "is 2"),
                (pro(["a"], 0), "options", ".*2 to 26"),
                (pro(["a", " "], 0), "options", "has no text"),
                (pro(["a", "b"], 0, ""), "question", "is empty"),
            )
        ),
        ("a.csv", "a,b\n", "no rows"),
        ("a.csv", 'a,b\n"x,y\n', "csv"),
        ("a.csv", "a,b,a\n1,2,3\n", "columns called 'a'"),
    ],
)
def test_a_refusal_names_what_is_wrong(tmp_path, name, text, names):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=names):
        read(str(tmp_path / name))


def test_options_are_read_with_keys_of_columns(jsonl):
    row = {"question": "Which?", "choices": ["w", "x"], "answer": 1, "label": 0, "subject": "s"}
    (by_source,) = read(jsonl([row]), source_key="subject").questions
    assert (option(by_source, by_source.ground_truth), by_source.source) == ("x", "s")
    (by_answer,) = read(jsonl([row]), answer_key="label").questions
    assert option(by_answer, by_answer.ground_truth) == "w"


def test_options_that_are_in_the_prompt_are_not_added(jsonl):
    text = "Which?\n(A) w\n(B) x y"
    messages = [{"role": "user", "content": text}]
    for prompt in (text, messages):
        (question,) = read(jsonl([{"prompt": prompt, "options": ["w", "x y"], "answer": 1}])).questions
        assert (question.text, question.ground_truth) == (text, "B")
    (question,) = read(jsonl([{"prompt": messages, "options": ["x y", "w"], "answer": 1}])).questions
    assert option(question, question.ground_truth) == "w"


def test_options_that_speak_of_others_stay_in_order(jsonl):
    rows = [{"question": f"{i}?", "choices": ["w", "x", "y", "Both A and B"], "answer": 3} for i in range(9)]
    assert {q.ground_truth for q in read(jsonl(rows)).questions} == {"D"}


def test_a_row_without_options(jsonl):
    rows = [{"question": "1?", "options": ["1", "2"], "answer": "A"}, {"question": "2?", "options": [], "answer": "2"}]
    assert [q.ground_truth for q in read(jsonl(rows)).questions][1] == "2"
    rows[1]["answer"] = 2
    with pytest.raises(ValueError, match="line 2: column 'options' is empty, and 'answer' is 2"):
        read(jsonl(rows))


def test_a_gap_between_options_is_named(jsonl):
    rows = [{"question": "?", "A": "w", "B": "x", "C": "y", "answer": "A"}]
    assert len(read(jsonl([rows[0] | {"C": None}])).questions) == 1
    with pytest.raises(ValueError, match="column 'B' has no text"):
        read(jsonl([rows[0] | {"B": None}]))


def test_digits_are_texts_or_numbers_as_the_file_shows(tmp_path):
    path, head = tmp_path / "q.csv", "question,A,B,C,answer\n"
    for cells, right in (
        (["1,2,3,2", "2,4,6,6"], ["2", "6"]),
        (["1,2,3,2", "5,6,7,0"], ["3", "5"]),
        (["5,6,12,12", "1,2,3,9"], ["12"]),
    ):
        path.write_text(head + "".join(f"{i}?,{row}\n" for i, row in enumerate(cells)))
        assert [option(q, q.ground_truth) for q in read(str(path), skip_bad=True).questions] == right


def test_plain_csv(tmp_path):
    (tmp_path / "a.csv").write_text("\ufeff,problem,answer\n0,1+1,2\n1,1+2,3,4\n")  # pandas leaves a header empty
    (question,), skipped = read(str(tmp_path / "a.csv"), skip_bad=True)
    assert (question.prompt, question.ground_truth) == ("1+1", "2")
    assert skipped == ["a.csv, row 2: the row has more cells than the header"]


def test_in_a_folder_csv_is_read_if_there_is_nothing_else(tmp_path):
    (tmp_path / "a.csv").write_text("problem,answer\n1+1,2\n")
    assert [q.prompt for q in read(str(tmp_path)).questions] == ["1+1"]
    (tmp_path / "b.jsonl").write_text('{"problem": "1+2", "answer": "3"}\n')
    assert [q.prompt for q in read(str(tmp_path)).questions] == ["1+2"]
