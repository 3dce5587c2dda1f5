from functools import partial

import pytest

from llmtrain.data import read
from llmtrain.data.columns import Columns, parse_answer, parse_prompt
from llmtrain.data.tables import Table
from llmtrain.verifiers import python_tests


def table(*columns):
    return Table("t.parquet", "t", "row", columns, lambda _: iter(()))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("question", "answer"), ("question", "answer", "", "")),
        (("problem", "solution", "answer"), ("problem", "answer", "solution", "")),
        (("problem", "solution"), ("problem", "solution", "", "")),
        (("input", "target"), ("input", "target", "", "")),
        (("prompt", "question", "ground_truth", "answer"), ("prompt", "ground_truth", "", "")),
        (
            ("data_source", "prompt", "reward_model", "reward_model.ground_truth", "extra_info", "extra_info.answer"),
            ("prompt", "reward_model.ground_truth", "extra_info.answer", "data_source"),
        ),
    ],
)
def test_known_columns_are_recognised(columns, expected):
    assert Columns.of(table(*columns))[:4] == expected


def test_columns_that_are_asked_for():
    there = table("prompt", "answer", "extra", "extra.q", "extra.a")
    assert Columns.of(there, "extra.q", "extra.a")[:2] == ("extra.q", "extra.a")


def test_humaneval_s_check_goes_with_its_entry_point():
    there = table("task_id", "prompt", "entry_point", "canonical_solution", "test")
    columns = Columns.of(there)
    tests = "def check(candidate):\n    assert candidate(1) == 2"
    row = {"prompt": "def inc(x):", "entry_point": "inc", "test": tests}
    assert columns.question(row, "h", "row 0").ground_truth == {"test": tests, "entry_point": "inc"}
    assert {*columns.names} == {"prompt", "entry_point", "test"}
    assert python_tests.plan_of(columns.question(row, "h", "row 0").ground_truth).names == {"inc"}


def test_a_row_that_leaves_source_and_solution_blank():
    columns = Columns("question", "answer", "solution", "data_source")
    row = {"question": "2 + 3", "answer": "5", "solution": " ", "data_source": ""}
    found = columns.question(row, "sums", "row 0")
    assert (found.source, found.solution) == ("sums", None)


GSM8K = "He has 48/2 = <<48/2=24>>24 clips.\nIn all 24+48 = <<24+48=72>>72.\n#### 72"


def test_a_worked_solution_of_gsm8k():
    assert parse_answer(GSM8K) == ("72", "He has 48/2 = 24 clips.\nIn all 24+48 = 72.\n#### 72")


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("So\n#### 1,234,567 ", "1234567"),
        ("So\n#### -12,000.50", "-12000.50"),
        ("So\n#### (1,234)", "(1,234)"),  # a pair
        ("So\n#### 1,23", "1,23"),
        ("#### 5", "5"),
        ("#### Steps\n1 + 1 is 2.\n#### 2", "2"),
    ],
)
def test_the_number_after_the_mark(text, truth):
    assert parse_answer(text)[0] == truth


@pytest.mark.parametrize("text", ["a #### 5", "#### Title\nbody", "5"])
def test_text_without_a_last_line_of_an_answer_is_the_ground_truth(text):
    assert parse_answer(text) == (text, None)


def test_a_worked_solution_of_math():
    text = r"We have $x = \boxed{\frac{1}{2}}$."
    assert parse_answer(text, "solution") == (r"\frac{1}{2}", text)
    assert parse_answer(text, "ground_truth") == (text, None)
    assert parse_answer(r"\boxed{ 5 }", "solution") == ("5", r"\boxed{ 5 }")
    for bare in ("no box", r"\boxed{ }"):
        assert parse_answer(bare, "solution") == (bare, None)


@pytest.mark.parametrize("value", [0, 0.5, False, [1, 2], {"numbers": [3, 5], "target": 8}, " 7 "])
def test_ground_truths_stay_as_they_are(value):
    assert parse_answer(value) == (value, None)


def test_prompts():
    assert parse_prompt(" What? ") == " What? "
    chat = [{"content": "Be brief.", "role": "system"}, {"content": "What?", "role": "user", "name": None}]
    messages = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "What?"})
    assert parse_prompt(chat) == messages


def of(names, key="", answer=""):
    return Columns.of(table(*names), key, answer)


def truth(inner):
    columns = Columns("question", "reward_model.ground_truth", "", "")
    return columns.question({"question": "2 + 3", "reward_model": inner}, "sums", "row 0")


@pytest.mark.parametrize(
    ("function", "given", "names"),
    [
        *((parse_answer, value, "missing") for value in (None, float("nan"))),
        *((parse_answer, value, "empty") for value in ("", "  \n", [], {})),
        (parse_answer, b"5", "bytes"),
        (parse_answer, "work\n#### ", "answer after ####"),
        (parse_answer, "\ud800", "surrogate.* 0$"),
        (parse_prompt, None, "missing"),
        *((parse_prompt, value, "empty") for value in (" ", [])),
        (parse_prompt, 5, "int"),
        (parse_prompt, ["hello"], "message 0 .*str"),
        (parse_prompt, [{"role": "user"}], "message 0 .*'content'"),
        (parse_prompt, [{"role": "user", "content": "a"}, {"content": "b"}], "message 1 .*'role'"),
        (parse_prompt, [{"role": "user", "content": [{"text": "a"}]}], "message 0 .*'content'.*list"),
        (parse_prompt, [{"role": "", "content": "a"}], "message 0 .*'role'.*empty"),
        (parse_prompt, [{"role": "user", "content": s} for s in "a "], "empty.*last message"),
        (parse_prompt, [{"role": "user", "content": "x\udc00"}], "surrogate.* 1$"),
        *(
            (truth, inner, r"'reward_model\.ground_truth'.*missing")
            for inner in (None, "ground_truth", {"style": "rule"})
        ),
        (
            partial(of, answer="extra.b"),
            ["prompt", "extra"],
            r"^t\.parquet.*'extra\.b' \(answer_key\).*: prompt, extra$",
        ),
        (partial(of, key="x"), ["prompt", "answer"], r"'x' \(prompt_key\)"),
        (of, ["prompt", "a\\b"], r"an answer.*answer_key.*: prompt, a\\b$"),
        (of, ["answer", *(f"x{i}" for i in range(31))], "a prompt.*: answer, x0, .*, x28, and 2 more$"),
        (of, ["na\nme", "and\x1b"], ": na me, and$"),
    ],
)
def test_a_refusal_names_what_is_wrong(function, given, names):
    with pytest.raises(ValueError, match=names):
        function(given)


@pytest.mark.parametrize(
    ("row", "prompt"),
    [
        ({"Body": "Jo has 3.", "Question": "How many?"}, "Jo has 3.\n\nHow many?"),
        ({"passage": " It is.\n", "question": "Is it?"}, "It is.\n\nIs it?"),
        ({"passage": None, "question": " Is it?"}, " Is it?"),
        ({"context": "It is.", "question": "It is. Is it?"}, "It is. Is it?"),
        ({"instruction": "Say yes.", "context": ["a", "b"], "question": "Is it?"}, "Say yes.\n\na\nb\n\nIs it?"),
        ({"instruction": "Add.", "input": "1 2"}, "Add.\n\n1 2"),
        ({"instruction": "Add.", "input": ""}, "Add."),
        (
            {"question": "Is it?", "context": {"title": ["T", "U"], "lines": [["a", "b"], ["c"]]}},
            "T\na\nb\n\nU\nc\n\nIs it?",
        ),
    ],
)
def test_texts_beside_the_question_are_part_of_the_prompt(row, prompt):
    columns = Columns.of(table(*row, "answer"))
    assert columns.question(row | {"answer": "1"}, "s", "row 0").prompt == prompt


def test_a_system_prompt_in_a_column():
    columns = Columns.of(table("system_prompt", "prompt", "answer"))
    user = {"role": "user", "content": "1+1?"}
    system = {"role": "system", "content": "Be brief."}
    for prompt in ("1+1?", [user], [system, user]):
        row = {"system_prompt": "Be brief.", "prompt": prompt, "answer": "2"}
        assert columns.question(row, "s", "row 0").prompt == (system, user)
    assert columns.question({"system_prompt": " ", "prompt": "1+1?", "answer": "2"}, "s", "row 0").prompt == "1+1?"


def test_a_passage_that_is_no_text_is_named():
    with pytest.raises(ValueError, match="column 'context' is int"):
        Columns.of(table("context", "question", "answer")).question({"context": 5, "question": "?"}, "s", "row 0")


def test_mbpp_s_setup_stands_before_its_tests():
    columns = Columns.of(table("text", "code", "test_list", "test_setup_code", "challenge_test_list"), prompt="text")
    row = {"text": "Add.", "test_setup_code": "class N: pass", "test_list": ["assert f(N()) == 1"]}
    assert columns.question(row, "m", "row 0").ground_truth == ["class N: pass", "assert f(N()) == 1"]
    assert columns.question({**row, "test_setup_code": ""}, "m", "row 0").ground_truth == ["assert f(N()) == 1"]


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("9 (apples)", "9"),
        ("1,200 (square feet)", "1,200"),
        ("1/2 (cup)", "1/2"),
        ("-2.5 (°C)", "-2.5"),
        ("25 (%)", "25"),
        ("3 (mod 7)", "3 (mod 7)"),
        ("101 (base two)", "101 (base two)"),
        ("7 (a.m.)", "7 (a.m.)"),
        ("5 (x + 1)", "5 (x + 1)"),
        ("2 (3)", "2 (3)"),
        ("(1, 2)", "(1, 2)"),
        ("4 (or so)", "4 (or so)"),
    ],
)
def test_a_unit_in_brackets_is_no_part_of_the_answer(text, truth):
    assert parse_answer(text) == (truth, None)
    assert parse_answer(f"So it is.\n#### {text}")[0] == truth.replace(",200", "200")


def test_a_row_without_the_mark_that_others_have_is_bad(jsonl):
    marked = [{"question": f"{i}?", "answer": f"It is {i}.\n#### {i}"} for i in range(3)]
    long = "First add three and four, which is seven, and then double what you have."

    def bad(*answers, rows=marked):
        more = [{"question": f"and {i}?", "answer": answer} for i, answer in enumerate(answers)]
        return read(jsonl([*rows, *more]), skip_bad=True).skipped

    (one,) = bad("She has 7", "7", 7)
    assert one == "questions.jsonl, line 4: column 'answer' is a text of 3 words without ####, which other rows have"
    assert len(bad("x = 5", "7", "8", "9", long)) == 1  # three of eight have the mark
    assert bad("x = 5", long, rows=[]) == []
