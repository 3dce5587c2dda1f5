"""Speed of the math verifier, cost of pathological answers, and verdicts on the ground truths of real files.

    OMP_NUM_THREADS=1 python -m benchmarks.verifiers FILE... [--out docs/verifiers.md]

Every ground truth is boxed and judged against itself and, as a wrong answer, against the next question's truth.
"Parsed" judges it against itself by math-verify alone, without the short cuts for equal texts and plain numbers.
The page is generated from the measurements.
"""

import argparse
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from llmtrain.data import read
from llmtrain.kernels.timing import machine
from llmtrain.verifiers import Verifier, get_verifier
from llmtrain.verifiers.math.answer_text import number, read_truth, tidy

WORKERS, TIMEOUT = 2, 2.0
SHORT = [("42", "42"), ("\\frac{3}{4}", "0.75"), ("1,234", "1234"), ("17", "18"), ("-5", "5"), ("2.50", "2.5")]
SYMBOLIC = [
    ("x^{2}+%d", "%d+x^2"),
    ("\\sqrt{%d}", "2\\sqrt{%d}"),
    ("(1,%d)", "(1, %d)"),
    ("\\frac{%d\\pi}{6}", "%d\\pi"),
    ("\\frac{\\sqrt{%d}}{2}", "\\sqrt{%d}/2"),
]
OTHERS = [
    ("\\sin(%dx)", "\\sin(x\\cdot %d)"),
    ("\\{1,%d\\}", "\\{%d,1\\}"),
    ("\\log_{2}(%d)", "\\log_2 %d"),
    ("x \\ge %d", "[%d, \\infty)"),
    ("%d\\text{ cm}", "%d"),
    ("y=%dx", "y=x+%d"),
]
LEFT = [("\\sqrt{%dx^2}", "\\sqrt{%d}|x|"), ("%d/2x", "\\frac{%d}{2x}"), ("\\int_0^%d x dx", "%d")]
"""Answers that are not decided by value."""
PATHOLOGICAL = ["9^{9^{9}}", "9**9**9", "2^{2^{2^{2^{2^{2}}}}}", "7" * 100_000, "(" * 5000, "(2^{3})" * 200, "x^" * 500]
DIFFERENCES = [
    ("4.5\\times 10^{33}", "4.5e33"),
    ("1.6\\times 10^{-19}", "9.1\\times 10^{-31}"),
    ("2(3)", "6"),
    ("2(3)", "5"),
    ("\\gamma t", "\\gamma s"),
    ("\\sin{2t}u(t)", "u(t)\\sin(2t)"),
    ("\\frac{1}{3}E_{1}", "\\frac{1}{3}e_{1}"),
    ("x \\ge 2", "[2,\\infty)"),
    ("[2,\\infty)", "x \\ge 2"),
    ("\\sin(x)", "sin(x)"),
]
BAR = 1000
"""Target for verdicts per second on short answers."""

PAGE = """\
# Verifiers

`math` reads the final answer of a response: the last closed `\\boxed{{}}`, else the formula or the rest of the
sentence after the last `####`, `Answer:` or `answer is`, else the last number. It compares it with the ground truth:

1. as text, and as a plain number or fraction;
2. by value: both are parsed (arithmetic, letters, roots, powers, functions, sets, tuples, intervals, unions, matrices,
   equations, inequalities of a letter, units, scientific notation) and computed to 100 digits with numbers in place of
   their letters. Answers with different values are different. Answers that agree to 60 digits are equal, unless a
   branch of a root or logarithm could hide a difference;
3. by [math-verify](https://github.com/huggingface/Math-Verify) if an answer cannot be parsed, or if values agree only
   at some points.

It runs in processes that can be killed: a check that hangs or crashes affects only its own response, which counts as
wrong and is counted under `verify/timeout`, `verify/crash` or `verify/error`. The limit is wall time: on a busy machine
a slow check may exceed it, and a run may not repeat exactly; choose `data.verifier_timeout` generously.

## Differences from math-verify

{differences}

Capital and small letters are different variables (E_1 is not e_1), but case is ignored for a single letter or word:
`(b)` is right for `B`, and so is `(B) 42`. Words after a number are ignored as a unit, set as text or not, unless they
contain a digit, a sign or a word that changes the number or adds another one (`5\\text{{ or 6}}`, `7 million`,
`10:30 PM`). A false equation of numbers, such as `4=5`, equals neither of its sides. Ambiguous forms such as `1/2x` are
left to math-verify.

Made by `python -m benchmarks.verifiers FILE...`, with {workers} workers and a limit of {timeout:g} s, on {machine}.

## Speed

{speed}

The target for short answers is {bar} verdicts/s. math-verify takes some milliseconds for each side that it has not
seen before. The last table shows the speed on real files, with no repeated answers and only wrong ones.

## Pathological answers

{pathological}

{together}

## Ground truths of real files

Each ground truth in `\\boxed{{}}` is judged against itself, and against the next question's if the two differ.
Questions with the same answer as the previous one are left out. "Parsed" uses only math-verify.

{files}

{misses}
"""


@dataclass
class Judged:
    """Results for a file's ground truths."""

    name: str
    answers: int
    own: float
    parsed: float
    others: int
    other: float
    rate: float
    """Verdicts per second on answers against the next question's truth."""
    misses: list[str] = field(default_factory=list)


def boxed(answer: str) -> str:
    return f"The answer is \\boxed{{{answer}}}."


def seconds(verify: Verifier, pairs: Sequence[tuple[str, str]]) -> tuple[float, int]:
    """Return the seconds to check pairs of (answer, truth), and the number of correct ones."""
    start = time.perf_counter()
    verdicts = verify([boxed(a) for a, _ in pairs], [b for _, b in pairs])
    return time.perf_counter() - start, sum(verdict.correct for verdict in verdicts)


def speed(verify: Verifier, n: int = 4000) -> list[list[str]]:
    kinds = {
        "numbers and fractions": [SHORT[i % len(SHORT)] for i in range(n)],
        "a rollout: 7 of these per expression": [
            (a % i, b % i) if i % 8 == 0 else SHORT[i % len(SHORT)]
            for i, (a, b) in ((i, SYMBOLIC[i // 8 % len(SYMBOLIC)]) for i in range(n))
        ],
        "expressions, without repetition": [(a % i, b % i) for i in range(n // 8) for a, b in SYMBOLIC],
        "functions, sets, intervals, units, equations, without repetition": [
            (a % i, b % i) for i in range(1, n // 8) for a, b in OTHERS
        ],
        "answers left to math-verify, without repetition": [(a % i, b % i) for i in range(n // 64) for a, b in LEFT],
    }
    rows = []
    for name, pairs in kinds.items():
        rate = len(pairs) / seconds(verify, pairs)[0]
        rows.append([name, f"{rate:,.0f}", "met" if rate >= BAR else "missed"])
    return rows


def pathological(verify: Verifier) -> list[list[str]]:
    rows = []
    for answer in PATHOLOGICAL:
        start = time.perf_counter()
        verdict = verify([boxed(answer)], ["5"])[0]
        shown = f"`{answer}`" if len(answer) < 30 else f"`{answer[:12]}`…, {len(answer):,} characters"
        rows.append([shown, f"{time.perf_counter() - start:.2f}", verdict.reason[:40]])
    return rows


def beside_others(verify: Verifier) -> str:
    """Return a sentence about the cost of two hanging answers among 1,000 others."""
    spent, correct = seconds(verify, [(answer, "5") for answer in [*[PATHOLOGICAL[-1]] * 2, *["5"] * 1000]])
    return f"2 hanging answers among 1,000 others: {spent:.2f} s in total, {correct:,} correct."


def alone(answer: str, truth: str) -> bool:
    """Return the verdict of math-verify alone."""
    import math_verify

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    a, b = (math_verify.parse(f"\\boxed{{{text}}}", parsing_timeout=None) for text in (answer, truth))
    return math_verify.verify(b, a, timeout_seconds=None)


def differences(verify: Verifier, alone: Verifier) -> list[list[str]]:
    """Return both verifiers' verdicts on answers that math-verify reads differently."""
    answers, truths = zip(*DIFFERENCES, strict=True)
    said = zip(verify(list(map(boxed, answers)), truths), alone(answers, truths), strict=True)
    return [
        [f"`{answer}`", f"`{truth}`", *("right" if verdict.correct else "wrong" for verdict in verdicts)]
        for answer, truth, verdicts in zip(answers, truths, said, strict=True)
    ]


def judge(verify: Verifier, parsed: Verifier, path: Path) -> Judged:
    found = [str(question.ground_truth) for question in read(str(path)).questions]
    truths = found[:1] + [b for a, b in pairwise(found) if a != b]
    answers = [read_truth(truth) for truth in truths]
    own = verify([boxed(a) for a in answers], truths)
    own_parsed = parsed(answers, answers)
    others = [(a, t) for a, t in zip(answers, [*truths[1:], truths[0]], strict=True) if differ(a, read_truth(t))]
    start = time.perf_counter()
    other = verify([boxed(a) for a, _ in others], [t for _, t in others])
    rate = len(others) / (time.perf_counter() - start)
    misses = [f"refused: `{a}`, {v.reason}" for a, v in zip(answers, own, strict=True) if not v.correct]
    misses += [f"accepted: `{a}` for `{t}`, {v.reason}" for (a, t), v in zip(others, other, strict=True) if v.correct]
    misses += [
        f"not by math-verify alone: `{a}`, {v.reason}"
        for a, v in zip(answers, own_parsed, strict=True)
        if not v.correct
    ]
    shares = [sum(v.correct for v in verdicts) / max(1, len(verdicts)) for verdicts in (own, own_parsed, other)]
    return Judged(path.name, len(truths), shares[0], shares[1], len(others), shares[2], rate, misses)


def differ(a: str, b: str) -> bool:
    a, b = tidy(a), tidy(b)
    return a != b and (number(a) is None or number(a) != number(b))


def table(headings: list[str], rows: list[list[str]]) -> str:
    rule = ["---", *["--:"] * (len(headings) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [headings, rule, *rows])


def misses(files: list[Judged]) -> str:
    told = [f"- {file.name}: {miss}" for file in files for miss in file.misses]
    return "\n".join(["Missed:", "", *told]) if told else "None of them is missed."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="question files in a format of llmtrain data")
    parser.add_argument("--out", type=Path, help="page to write")
    given = parser.parse_args()
    with (
        get_verifier("math", workers=WORKERS, timeout=TIMEOUT) as verify,
        get_verifier("llmtrain.verifiers.math.math_equal:equal", workers=WORKERS, timeout=TIMEOUT) as parsed,
        get_verifier("benchmarks.verifiers:alone", workers=WORKERS, timeout=TIMEOUT) as by_itself,
    ):
        parts = {"speed": table(["answers", "verdicts/s", f"target {BAR:,}"], speed(verify))}
        parts["pathological"] = table(["answer", "seconds", "verdict"], pathological(verify))
        parts["differences"] = table(["answer", "truth", "here", "math-verify"], differences(verify, by_itself))
        parts["together"] = beside_others(verify)
        judged = [judge(verify, parsed, path) for path in sorted(given.files)]
    shown = [
        [
            file.name,
            f"{file.answers:,}",
            f"{file.own:.2%}",
            f"{file.parsed:.2%}",
            f"{file.others:,}",
            f"{file.other:.2%}",
            f"{file.rate:,.0f}",
        ]
        for file in judged
    ]
    parts["files"] = table(["file", "answers", "accepted", "parsed", "next", "accepted", "verdicts/s"], shown)
    parts["misses"] = misses(judged)
    page = PAGE.format(workers=WORKERS, timeout=TIMEOUT, machine=machine("cpu", 1), bar=f"{BAR:,}", **parts)
    print(page)
    if given.out:
        given.out.write_text(page)


if __name__ == "__main__":
    main()
