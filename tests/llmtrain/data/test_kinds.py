"""Kinds of questions by text and ground truth: hand-made ones, and the questions of real files."""

from collections import Counter
from pathlib import Path

import pytest

from llmtrain.cli import main
from llmtrain.data.kinds import KINDS, kind_of
from llmtrain.data.question import Question
from llmtrain.data.read import read

CASES = [
    ("Is 91 prime?", "No", "true-false"),
    ("Every group of order 15 is cyclic. True or false?", "\\text{True}.", "true-false"),
    ("Is it so?", True, "true-false"),
    ("Which is largest? (A) 1 (B) 2 (C) 3", "C", "choice"),
    ("Which is largest? $\\textbf{(A)}\\ 1 \\qquad \\textbf{(B)}\\ 2$", "\\text{(B)}", "choice"),
    ("Which is largest?\nA. 1\nB. 2\nC. 3", "B", "choice"),
    ("Which matrix commutes with all others, A or B?", "A", ""),  # a letter, but no options
    ("Which is largest? (A) 1 (B) 2", "2", ""),  # options, and an answer of its own
    ("Which is largest? (A) 1 (B) 2", "F", ""),  # no such option
    ("Let n be odd. Prove that n² − 1 is a multiple of 8.", "8", "proof"),
    ("Find x, and prove that it is the only one.", "4", ""),  # an answer is asked for as well
    ("Calculate the product of 2 and 3. Show that it is even.", "6", ""),
    ("To prove a lemma, Ann used 5 steps. How many steps?", "5", ""),
    ("证明：根号2是无理数。", "略", "proof"),
    ("已知AB=AC，求证：角B等于角C", "", "proof"),
    ("下列说法正确的是（ ）（A）3（B）4（C）5（D）6", "B", "choice"),
    ("下列说法正确的是（  ）\nA．3\nB．4\nC．5\nD．6", "B", "choice"),
    ("下列选项正确的是 A、3 B、4 C、5 D、6", "C", "choice"),
    ("Which is largest? (a) 3 (b) 4 (c) 5", "c", "choice"),
    ("Let f(a) = 2 and f(b) = 3. Which letter has the larger f?", "b", ""),  # arguments of f, no options
    ("判断题：2是质数。", "正确", "true-false"),
    ("判断对错:4是质数。", "错", "true-false"),
    ("Describe all groups of order 4.", "proof", "proof"),
    ("Observations show that its mass is m. What is m?", "3", ""),
    ("Show the smallest prime above 90.", "97", ""),
    ("How many truths are there?", "1", ""),
]


@pytest.mark.parametrize(("text", "truth", "kind"), CASES)
def test_the_kind_follows_from_text_and_ground_truth(text, truth, kind):
    assert kind_of(Question(text, truth)) == kind
    assert kind_of(Question(({"role": "user", "content": text},), truth)) == kind


def test_of_real_files_few_questions_are_left_out(real):
    """DAPO asks for whole numbers, also where it says "show that"; MATH-500 has three with options."""
    found = Counter(kind_of(one) for one in read(real("DAPO-Math-17k.parquet")).questions)
    assert set(found) == {""}
    assert Counter(map(kind_of, read(real("math500.parquet")).questions))["choice"] == 3


@pytest.fixture
def several(jsonl):
    """File with two questions of each kind, and two others."""
    return jsonl(
        [
            {"question": f"{text} ({i})", "answer": truth}
            for i in range(2)
            for text, truth in (
                ("Is it?", "yes"),
                ("Which? (A) 1 (B) 2", "A"),
                ("Prove that 1 = 1.", "1"),
                ("How many?", str(i + 5)),
            )
        ]
    )


def test_subset_leaves_out_kinds_before_it_draws(several, tmp_path, capsys):
    out = str(tmp_path / "out.parquet")
    command = ["subset", "--data", several, "--method", "random", "--size", "2", "--out", out]
    assert main([*command, "--without", *KINDS]) == 0
    assert {one.ground_truth for one in read(out).questions} == {"5", "6"}
    assert "2 of 8 questions (25.0%), 6 left out as true-false, choice, proof" in capsys.readouterr().out
    assert main([*command[:6], "5", *command[7:], "--overwrite", "--without", *KINDS]) == 2
    assert "size must be within 1 and 2" in capsys.readouterr().err
    alone = Path(several).with_name("alone.jsonl")
    alone.write_text('{"question": "Is it?", "answer": "yes"}\n')
    assert main(["subset", "--data", str(alone), *command[3:], "--overwrite", "--without", "true-false"]) == 2
    assert "has no questions without true-false: leave out fewer kinds" in capsys.readouterr().err
