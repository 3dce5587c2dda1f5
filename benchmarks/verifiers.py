"""Measure the math verifier beside math-verify alone: speed, pathological answers, ground truths of real files.

    OMP_NUM_THREADS=1 python -m benchmarks.verifiers FILE... [--out docs/verifiers.md]

Each ground truth is judged against itself, the next question's, other forms of itself (answer_forms.py) and near misses
(near_misses.py). The page is made of these measurements.
"""

import argparse
import logging
import random
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from llmtrain.data import read
from llmtrain.kernels.timing import machine
from llmtrain.verifiers import Verifier, get_verifier
from llmtrain.verifiers.math.answer_text import read_truth, tidy
from llmtrain.verifiers.math.plain_number import number

from . import near_misses
from .answer_forms import same, whole

STORED = Path(__file__).parent.parent / "docs" / "verifiers"
"""Folder of other benchmarks' tables."""
WORKERS, TIMEOUT = 2, 5.0
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
WHOLE_NUMBERS, SAMPLE, EXAMPLES = 60, 500, 2
"""Whole numbers drawn from the files, forms whose checks are timed, and examples shown of a kind."""
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

PAGE = Path(__file__).with_name("verifiers_page.md")
"""Text of the page, with names of its parts between << and >>."""


@dataclass
class Judged:
    """Verdicts on the ground truths of a file."""

    name: str
    answers: int
    own: float
    others: int
    other: float
    rate: float
    """Verdicts per second on answers against the next question's truth."""
    misses: list[str] = field(default_factory=list)


def boxed(answer: str) -> str:
    return f"The answer is \\boxed{{{answer}}}."


def seconds(verify: Verifier, pairs: Sequence[tuple[str, str]]) -> tuple[float, int]:
    """Return the seconds of a check of (answer, truth), and the number of correct answers."""
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
        "the same expressions, each 8 times": [(a % i, b % i) for i in range(n // 64) for a, b in SYMBOLIC * 8],
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
    """Measure the cost of answers that hang to those that do not."""
    spent, correct = seconds(verify, [(answer, "5") for answer in [*[PATHOLOGICAL[-1]] * 2, *["5"] * 1000]])
    return f"2 hanging answers among 1,000 others: {spent:.2f} s in total, {correct:,} correct."


def alone(answer: str, truth: str) -> bool:
    """Return the verdict of math-verify alone on a box with `answer`."""
    import math_verify

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    a, b = (math_verify.parse(f"\\boxed{{{text}}}", parsing_timeout=None) for text in (answer, truth))
    return math_verify.verify(b, a, timeout_seconds=None)


def differences(verify: Verifier, alone: Verifier) -> list[list[str]]:
    """Return the verdicts of both on answers that they read differently."""
    answers, truths = zip(*DIFFERENCES, strict=True)
    said = zip(verify(list(map(boxed, answers)), truths), alone(answers, truths), strict=True)
    return [
        [f"`{answer}`", f"`{truth}`", *("right" if verdict.correct else "wrong" for verdict in verdicts)]
        for answer, truth, verdicts in zip(answers, truths, said, strict=True)
    ]


def forms(paths: Sequence[Path]) -> list[tuple[str, str, str, bool]]:
    """Return (kind, answer, truth, right) of other forms and near misses of the truths in these files."""
    found = [read_truth(question.ground_truth) for path in paths for question in read(str(path)).questions]
    numbers = [truth for truth in dict.fromkeys(found) if whole(truth) is not None]
    truths = [truth for truth in dict.fromkeys(found) if whole(truth) is None]
    truths += random.Random(0).sample(numbers, min(WHOLE_NUMBERS, len(numbers)))
    right = [(kind, answer, truth, True) for truth in truths for kind, answer in same(truth)]
    return right + [(kind, answer, truth, False) for truth in truths for kind, answer in near_misses.other(truth)]


def compare(verify: Verifier, alone: Verifier, paths: Sequence[Path]) -> dict[str, str]:
    """Return the parts of the page on other forms and near misses, judged by both; rates are those of a sample."""
    pairs = forms(paths)
    sample = random.Random(0).sample(pairs, min(SAMPLE, len(pairs)))
    spent, here, there = [], [], []
    for judged in (sample, pairs):
        answers, truths = [answer for _, answer, _, _ in judged], [truth for _, _, truth, _ in judged]
        start = time.perf_counter()
        here = [verdict.correct for verdict in verify(list(map(boxed, answers)), truths)]
        middle = time.perf_counter()
        there = [verdict.correct for verdict in alone(answers, truths)]
        spent.append((middle - start, time.perf_counter() - middle))
    (quick, slow), *_ = spent
    number_of = {right: sum(pair[3] is right for pair in pairs) for right in (True, False)}
    totals = [
        [
            name,
            *(f"{wrong(pairs, said, right):,} of {number_of[right]:,}" for right in (True, False)),
            f"{len(sample) / seconds:,.0f}",
        ]
        for name, said, seconds in (("`math`", here, quick), ("math-verify alone", there, slow))
    ]
    own = [f"`{a}` for `{t}`" for (_, a, t, right), said in zip(pairs, here, strict=True) if said is not right]
    return {
        "totals": table(["verifier", "false rejects", "false accepts", "verdicts/s"], totals),
        "ratio": f"{slow / quick:.1f}",
        "rejects": by_kind(pairs, here, there, True),
        "accepts": by_kind(pairs, here, there, False),
        "wrong": f"`math` is wrong on {len(own)}" + (": " if own else "") + ", ".join(own) + ".",
    }


def wrong(pairs: Sequence[tuple[str, str, str, bool]], said: Sequence[bool], right: bool) -> int:
    """Return the number of wrong verdicts on the right answers, or on the others."""
    return sum(pair[3] is right and verdict is not right for pair, verdict in zip(pairs, said, strict=True))


def by_kind(
    pairs: Sequence[tuple[str, str, str, bool]], here: Sequence[bool], there: Sequence[bool], right: bool
) -> str:
    """Return a table of wrong verdicts by kind of answer, with examples that math-verify alone gets wrong."""
    kinds = defaultdict(list)
    for (kind, answer, truth, is_right), own, other in zip(pairs, here, there, strict=True):
        if is_right is right:
            kinds[kind].append((answer, truth, own is not right, other is not right))
    rows = []
    for kind, judged in kinds.items():
        shown = [f"`{a}` for `{t}`" for a, t, _, missed in judged if missed and "|" not in a + t]
        shown = random.Random(0).sample(sorted(shown, key=len)[:40], min(EXAMPLES, len(shown)))
        rows.append([kind, f"{len(judged):,}", *(f"{sum(j[i] for j in judged):,}" for i in (2, 3)), ", ".join(shown)])
    return table(["answers", "number", "`math`", "math-verify alone", "examples of the latter"], rows)


def judge(verify: Verifier, path: Path) -> Judged:
    """Judge the truths of a file against themselves and their neighbours."""
    found = [str(question.ground_truth) for question in read(str(path)).questions]
    truths = found[:1] + [b for a, b in pairwise(found) if a != b]
    answers = [read_truth(truth) for truth in truths]
    own = verify([boxed(a) for a in answers], truths)
    others = [(a, t) for a, t in zip(answers, [*truths[1:], truths[0]], strict=True) if differ(a, read_truth(t))]
    start = time.perf_counter()
    other = verify([boxed(a) for a, _ in others], [t for _, t in others])
    rate = len(others) / (time.perf_counter() - start)
    misses = [f"refused: `{a}`, {v.reason}" for a, v in zip(answers, own, strict=True) if not v.correct]
    misses += [f"accepted: `{a}` for `{t}`, {v.reason}" for (a, t), v in zip(others, other, strict=True) if v.correct]
    shares = [sum(v.correct for v in verdicts) / max(1, len(verdicts)) for verdicts in (own, other)]
    return Judged(path.name, len(truths), shares[0], len(others), shares[1], rate, misses)


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
    parser.add_argument("--red-team", type=Path, default=STORED / "red_team.txt", help="output of benchmarks.red_team")
    parser.add_argument("--variants", type=Path, default=STORED / "answer_variants.txt", help="of answer_variants")
    parser.add_argument("--out", type=Path, help="page to write")
    given = parser.parse_args()
    with (
        get_verifier("math", workers=WORKERS, timeout=TIMEOUT) as verify,
        get_verifier("benchmarks.verifiers:alone", workers=WORKERS, timeout=TIMEOUT) as by_itself,
    ):
        parts = {"speed": table(["answers", "verdicts/s", f"target {BAR:,}"], speed(verify))}
        parts["pathological"] = table(["answer", "seconds", "verdict"], pathological(verify))
        parts["differences"] = table(["answer", "truth", "here", "math-verify"], differences(verify, by_itself))
        parts["together"] = beside_others(verify)
        parts |= compare(verify, by_itself, sorted(given.files))
        judged = [judge(verify, path) for path in sorted(given.files)]
    shown = [
        [
            file.name,
            f"{file.answers:,}",
            f"{file.own:.2%}",
            f"{file.others:,}",
            f"{file.other:.2%}",
            f"{file.rate:,.0f}",
        ]
        for file in judged
    ]
    parts["files"] = table(["file", "answers", "accepted", "next", "accepted", "verdicts/s"], shown)
    parts["misses"] = misses(judged)
    parts |= {"red_team": given.red_team.read_text().strip(), "variants": given.variants.read_text().strip()}
    fixed = {
        "math_verify": version("math-verify"),
        "whole_numbers": WHOLE_NUMBERS,
        "workers": WORKERS,
        "timeout": f"{TIMEOUT:g}",
        "machine": machine("cpu", 1),
        "bar": f"{BAR:,}",
    }
    parts |= {name: str(value) for name, value in fixed.items()}
    page = re.sub("<<(\\w+)>>", lambda found: parts[found[1]], PAGE.read_text())
    print(page)
    if given.out:
        given.out.write_text(page)


if __name__ == "__main__":
    main()
