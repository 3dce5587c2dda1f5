"""IF-Eval: each instruction followed and not, and rows as the hub publishes them."""

import json
import re
import sys
from importlib.util import find_spec
from itertools import product

import pytest

from llmtrain.data import read
from llmtrain.verifiers import get_verifier
from llmtrain.verifiers.if_eval import RULES, check
from llmtrain.verifiers.math.truths import usable

LEAST, LESS = {"relation": "at least"}, {"relation": "less than"}
CASES = [
    ("keywords:existence", {"keywords": ["sun", "moon"]}, "Sun and moon.", "The sun."),
    ("keywords:frequency", LEAST | {"keyword": "a", "frequency": 2}, "a, A", "a"),
    ("keywords:frequency", LESS | {"keyword": "cat", "frequency": 2}, "one cat", "cat cat"),
    ("keywords:forbidden_words", {"forbidden_words": ["can"]}, "a candle", "I Can"),
    ("keywords:letter_frequency", {"letter": "Q", "let_frequency": 2, "let_relation": "at least"}, "qQ", "q"),
    ("length_constraints:number_sentences", LEAST | {"num_sentences": 3}, "One. Two! Three?", "One... two!"),
    ("length_constraints:number_sentences", LESS | {"num_sentences": 2}, "Only one", "One. Two."),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\na\n***\nb", "a\n***\n***\nb"),
    ("length_constraints:number_words", LESS | {"num_words": 3}, "two words", "not two words"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "yes"},
        "a\n\n'Yes, b",
        "a\n\nno",
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] and [b]", "[a]"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "x\np. s. y", "x ps"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "P.P.S. y", "P.S. y"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n- b", "* a\n**b**"),
    ("detectable_format:constrained_response", {}, "My answer is no.", "No."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and **b**", "*a* and * *"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        "Section 1\na\nSection 2\nb",
        "Section 1\na",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{a: 1}"),
    ("detectable_format:title", {}, "<<Joy>>\nx", "<< >>\nx"),
    ("combination:two_responses", {}, "a\n******\nb", "a\n******\na"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it"}, "say it\nit", "it"),
    ("startend:end_checker", {"end_phrase": "The end."}, 'x "the end."', "The end. x"),
    ("startend:quotation", {}, '"a\nb"', '"a'),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        "BIG WELL-KNOWN dog",
        "BIG dog",
    ),
    ("punctuation:no_comma", {}, "a b", "a, b"),
]
IN_ENGLISH = [
    ("change_case:english_capital", {}, "THIS IS AN ENGLISH SENTENCE.", "This is an English sentence."),
    ("change_case:english_capital", {}, "THIS IS AN ENGLISH SENTENCE.", "DAS IST EIN DEUTSCHER SATZ."),
    ("change_case:english_lowercase", {}, "this is an english sentence.", "This is an English sentence."),
    ("change_case:english_lowercase", {}, "this is an english sentence.", "das ist ein deutscher satz."),
    ("language:response_language", {"language": "de"}, "Das ist ein deutscher Satz.", "This is an English sentence."),
]
needs_langdetect = pytest.mark.skipif(find_spec("langdetect") is None, reason="pip install langdetect")


@pytest.mark.parametrize(
    ("name", "given", "right", "wrong"),
    [*CASES, *(pytest.param(*case, marks=needs_langdetect) for case in IN_ENGLISH)],
)
def test_instructions(name, given, right, wrong):
    truth = {"instruction_id_list": [name], "kwargs": [given]}
    assert check(right, truth).correct
    assert not check(wrong, truth).correct
    assert check(wrong, truth).reason == f"does not follow {name}"


def test_all_published_instructions_are_tried():
    assert {name for name, *_ in [*CASES, *IN_ENGLISH]} == set(RULES)
    assert len(RULES) == 25


def test_all_instructions_of_a_question_count_and_none_is_followed_by_silence():
    truth = {"instruction_id_list": ["punctuation:no_comma", "detectable_format:title"], "kwargs": [{}, None]}
    assert [check(text, truth).correct for text in ("<<a>>", "<<a, b>>", "a", " ")] == [True, False, False, False]


def test_rows_as_the_hub_publishes_them(parquet):
    row = {
        "key": 1,
        "prompt": "Write.",
        "instruction_id_list": ["punctuation:no_comma"],
        "kwargs": [{"num_words": None}],
    }
    (question,) = read(parquet([row], "ifeval.parquet")).questions
    assert question.ground_truth == {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    with get_verifier("ifeval", workers=1, timeout=20.0) as verify:
        assert [v.correct for v in verify(["a b", "a, b"], [question.ground_truth] * 2)] == [True, False]


@pytest.mark.parametrize(
    ("column", "value", "names"),
    [("prompt", " ", "empty"), ("instruction_id_list", [], "names"), ("kwargs", [], "1 objects")],
)
def test_a_broken_row_names_its_column(column, value, names, tmp_path):
    path = tmp_path / "ifeval.jsonl"
    row = {"prompt": "Write.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    path.write_text(json.dumps(row | {column: value}))
    with pytest.raises(ValueError, match=f"'{column}' .*{names}"):
        read(str(path))


@pytest.mark.parametrize(
    ("truth", "names"),
    [("42", "instruction_id_list and kwargs"), ({"instruction_id_list": ["rhyme"], "kwargs": [{}]}, "'rhyme'")],
)
def test_a_ground_truth_without_instructions_is_refused(truth, names):
    with pytest.raises(ValueError, match=names):
        check("x", truth)


@pytest.mark.parametrize(("name", "given", "right", "wrong"), IN_ENGLISH)
def test_a_language_needs_its_detector(name, given, right, wrong, monkeypatch):
    """A German text in capitals counted as an English one."""
    monkeypatch.setitem(sys.modules, "langdetect", None)  # as if it were not installed
    with pytest.raises(ValueError, match=f"{name} needs a package: pip install langdetect"):
        check(right, {"instruction_id_list": [name], "kwargs": [given]})


@pytest.mark.parametrize(
    ("name", "kwargs", "told"),
    [
        ("length_constraints:number_words", {"num_words": 3, "relation": "at most"}, "relation is 'less than' or 'at"),
        (
            "length_constraints:number_words",
            {"num_words": "3", "relation": "at least"},
            "is a whole number above 0, not '3'",
        ),
        ("length_constraints:number_words", {"num_words": 3}, "takes num_words, relation; its kwargs have num_words"),
        ("keywords:existence", {"keywords": "cat"}, "keywords is a list of texts that are not"),
        (
            "keywords:forbidden_words",
            {"forbidden_words": "cat"},
            "forbidden_words is a list of texts",
        ),
        ("keywords:forbidden_words", {"forbidden_words": ["cat", 3]}, r"not blank, not \['cat', 3\]"),
        ("punctuation:no_comma", {"relation": "at least"}, "takes no argument; its kwargs have relation"),
        ("change_case:capital_word_frequency", {"capital_frequency": 2.5, "capital_relation": "at least"}, "not 2.5"),
        ("keywords:existence", {"keywords": []}, r"a list of texts that are not blank, not \[\]"),
        ("keywords:existence", {"keywords": ["sun", " "]}, r"not \['sun', ' '\]"),
        ("keywords:letter_frequency", {"letter": "ab", "let_frequency": 1, "let_relation": "at least"}, "single one"),
        ("startend:end_checker", {"end_phrase": " "}, "end_phrase is a text that is not blank, not ' '"),
        ("length_constraints:number_words", {"num_words": 0, "relation": "at least"}, "above 0, not 0"),
        ("length_constraints:number_words", {"num_words": True, "relation": "at least"}, "above 0, not True"),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "a"},
            "nth_paragraph is 3 of 2 paragraphs",
        ),
    ],
)
def test_arguments_that_a_rule_cannot_read_are_refused(name, kwargs, told):
    """A relation that it does not know counted as `at least`; a text for a list was searched letter by letter.

    What asks for nothing, such as an empty keyword, was followed by every response.
    """
    with pytest.raises(ValueError, match=told):
        check("a tac", {"instruction_id_list": [name], "kwargs": [kwargs]})


@pytest.mark.parametrize(("names", "kwargs"), [(["punctuation:no_comma"], ["x"]), ([["a"]], [{}])])
def test_what_is_no_name_or_no_object_is_refused(names, kwargs):
    with pytest.raises(ValueError, match=r"objects, one for each|unknown instruction"):
        check("x", {"instruction_id_list": names, "kwargs": kwargs})


def test_a_table_makes_floats_of_numbers_and_none_of_what_is_absent():
    kwargs = {"num_paragraphs": 2.0, "nth_paragraph": 1.0, "first_word": "one", "relation": None}
    truth = {"instruction_id_list": ["length_constraints:nth_paragraph_first_word"], "kwargs": [kwargs]}
    assert check("One.\n\nTwo.", truth).correct


@pytest.mark.parametrize(
    ("name", "given", "right", "wrong"),
    [
        ("keywords:existence", {"keywords": ["C++"]}, "I like C++", "I like C"),
        ("keywords:existence", {"keywords": ["$5", "(five)"]}, "It costs $5 (five).", "It costs 5 five."),
        ("keywords:frequency", LEAST | {"keyword": "a.b", "frequency": 2}, "a.b A.B", "a.b axb"),
        ("keywords:forbidden_words", {"forbidden_words": ["C++"]}, "C, C+ or C++11", "I like c++."),
        (
            "detectable_format:multiple_sections",
            {"section_spliter": "(A)", "num_sections": 2},
            "(A) 1 x (A) 2",
            "A 1 x A 2",
        ),
    ],
)
def test_words_are_no_patterns(name, given, right, wrong):
    """They were searched as regular expressions: C stood for C++, and (five) for five."""
    test_instructions(name, given, right, wrong)


@pytest.mark.parametrize("between", ["\n\n", "\n\n\n\n", "\n \n", "\r\n\r\n"])
@pytest.mark.parametrize("before", ["", "\n\n"])
def test_blank_lines_make_no_paragraph(before, between):
    """The first word of an empty one was read, as after thinking that ends with a blank line."""
    given = {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "world"}
    truth = {"instruction_id_list": ["length_constraints:nth_paragraph_first_word"], "kwargs": [given]}
    assert check(f"{before}Hello{between}World is big", truth).correct
    assert not check(f"{before}World{between}Hello is big", truth).correct


@pytest.mark.parametrize(
    ("text", "correct"),
    [("NaN", False), ('{"a": Infinity}', False), ("[" * 100_000, False), ("9" * 5_000, True), ("[1.5, null]", True)],
)
def test_json_is_what_its_definition_says(text, correct):
    """Python also reads NaN, refuses long numbers, and ends in a RecursionError where brackets open forever."""
    truth = {"instruction_id_list": ["detectable_format:json_format"], "kwargs": [{}]}
    assert check(text, truth).correct is correct


@pytest.mark.parametrize(
    ("name", "given", "pattern", "follows"),
    [
        ("detectable_content:number_placeholders", {"num_placeholders": 1}, r"\[.*?\]", bool),
        ("detectable_format:number_bullet_lists", {"num_bullets": 1}, r"(?m)^\s*(?:\*[^*\n]|-)", lambda x: len(x) == 1),
        (
            "detectable_format:title",
            {},
            r"<<([^\n]+)>>",
            lambda titles: any(title.lstrip("<").rstrip(">").strip() for title in titles),
        ),
    ],
)
def test_marks_are_those_of_the_published_patterns(name, given, pattern, follows):
    """Every text of up to five of these characters, against the pattern, which takes seconds for a row of [ or <."""
    truth = {"instruction_id_list": [name], "kwargs": [given]}
    for length in range(1, 6):
        for characters in product("[]<>*-a \n", repeat=length):
            text = "".join(characters)
            expected = bool(text.strip()) and follows(re.findall(pattern, text))
            assert check(text, truth).correct is expected, repr(text)


@pytest.mark.parametrize("mark", ["[", "<", "\n"])
def test_a_row_of_open_marks_is_judged_at_once(mark):
    """Such responses kept the verifier for seconds; with a million, a search that begins anew at each takes hours."""
    names = ["detectable_content:number_placeholders", "detectable_format:title"]
    truth = {"instruction_id_list": names, "kwargs": [{"num_placeholders": 1}, {}]}
    assert not check(mark * 1_000_000 + "x", truth).correct


@pytest.mark.parametrize("write", [lambda x: x, json.dumps, str])
@pytest.mark.parametrize("key", ["instruction_id_list", "instruction_id"])
def test_ground_truths_as_data_sets_write_them(key, write):
    """verl keeps objects as JSON; IF-Multi-Constraints prints a list of one object, as Python does."""
    truth = {key: ["punctuation:no_comma", "keywords:existence"], "kwargs": [None, {"keywords": ["wet"]}]}
    for form in (truth, [truth]):
        assert [check(text, write(form)).correct for text in ("wet rain", "wet, rain", "rain")] == [True, False, False]


@pytest.mark.parametrize(
    ("truth", "told"),
    [
        (json.dumps({"func_name": "validate_lowercase", "N": None}), "an object with equally long instruction_id_list"),
        ("[{'instruction_id': ['copy:repeat'], 'kwargs': [None]}]", "unknown instruction 'copy:repeat'"),
    ],
)
def test_a_row_that_cannot_be_checked_is_refused_before_training(truth, told, tmp_path):
    """Only files with the columns of IF-Eval were looked at; others failed at their first response."""
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"prompt": "Write about rain.", "ground_truth": truth}))
    with pytest.raises(ValueError, match=f"line 1: .*{told}"):
        read(str(path), usable=usable("ifeval"))
