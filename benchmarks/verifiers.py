"""Speed of the math verifier, what pathological answers cost, and how it judges the ground truths of benchmarks.

    OMP_NUM_THREADS=1 python -m benchmarks.verifiers DATA

DATA holds parquet files with reward_model.ground_truth, or jsonl files with `answer`, such as GSM8K's. Every ground
truth is put into a box and judged against itself and, as a wrong answer, against the next question's. "Parsed" is
against itself once more, by math-verify alone: without the short cuts for equal texts and plain numbers.
"""

import json
import sys
import time
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq

from llmtrain.verifiers import Verifier, get_verifier
from llmtrain.verifiers.math_answer import number, read_truth, tidy

WORKERS, TIMEOUT = 2, 2.0
SHORT = [("42", "42"), ("\\frac{3}{4}", "0.75"), ("1,234", "1234"), ("17", "18"), ("-5", "5"), ("2.50", "2.5")]
SYMBOLIC = [
    ("x^{2}+%d", "%d+x^2"),
    ("\\sqrt{%d}", "2\\sqrt{%d}"),
    ("(1,%d)", "(1, %d)"),
    ("\\frac{%d\\pi}{6}", "%d\\pi"),
]
PATHOLOGICAL = ["9^{9^{9}}", "9**9**9", "2^{2^{2^{2^{2^{2}}}}}", "7" * 100_000, "(" * 5000, "(2^{3})" * 200, "x^" * 500]


def boxed(answer: str) -> str:
    return f"The answer is \\boxed{{{answer}}}."


def speed(verify: Verifier, n: int = 4000) -> None:
    for name, pairs in (
        ("numbers", [SHORT[i % len(SHORT)] for i in range(n)]),
        ("expressions, never twice the same", [(a % i, b % i) for i in range(n // 8) for a, b in SYMBOLIC]),
        ("a rollout: 7 numbers to each expression", [
            tuple(t % i for t in SYMBOLIC[i // 8 % 4]) if i % 8 == 0 else SHORT[i % len(SHORT)] for i in range(n)
        ]),
    ):  # fmt: skip
        start = time.perf_counter()
        verify([boxed(a) for a, _ in pairs], [b for _, b in pairs])
        print(f"{name}: {len(pairs) / (time.perf_counter() - start):,.0f} verdicts/s")


def pathological(verify: Verifier) -> None:
    for answer in PATHOLOGICAL:
        start = time.perf_counter()
        verdict = verify([boxed(answer)], ["5"])[0]
        print(f"{answer[:24]!r} ({len(answer)} characters): {time.perf_counter() - start:.2f} s, {verdict.reason[:60]}")
    answers = [*PATHOLOGICAL[:2], *["5"] * 1000]
    start = time.perf_counter()
    verdicts = verify([boxed(a) for a in answers], ["5"] * len(answers))
    correct = sum(v.correct for v in verdicts)
    print(f"2 that hang with 1000 that do not: {time.perf_counter() - start:.2f} s, {correct} correct")


def ground_truths(path: Path) -> list[str]:
    """The different ground truths of a file, one after the other."""
    if path.suffix == ".parquet":
        rows = pq.read_table(path, columns=["reward_model"])["reward_model"].to_pylist()
        truths = [str(row["ground_truth"]) for row in rows]
    else:
        truths = [str(json.loads(line)["answer"]) for line in path.read_text().splitlines() if line.strip()]
    kept = truths[:1]
    return kept + [b for a, b in pairwise(truths) if a != b]


def judge(verify: Verifier, parsed: Verifier, path: Path) -> None:
    truths = ground_truths(path)
    answers = [read_truth(truth) for truth in truths]
    own = verify([boxed(a) for a in answers], truths)
    own_parsed = parsed(answers, answers)
    others = [(a, t) for a, t in zip(answers, [*truths[1:], truths[0]], strict=True) if differ(a, read_truth(t))]
    other = verify([boxed(a) for a, _ in others], [t for _, t in others])
    print(
        f"{path.name}: {len(truths)} answers, own {sum(v.correct for v in own) / len(own):.2%}, "
        f"parsed {sum(v.correct for v in own_parsed) / len(own):.2%}, "
        f"next {sum(v.correct for v in other) / max(1, len(other)):.2%} of {len(other)}"
    )
    for answer, verdict in zip(answers, own, strict=True):
        if not verdict.correct:
            print(f"    refused: {answer!r}: {verdict.reason}")
    for answer, verdict in zip(answers, own_parsed, strict=True):
        if not verdict.correct:
            print(f"    not by math-verify: {answer!r}: {verdict.reason}")
    for (answer, truth), verdict in zip(others, other, strict=True):
        if verdict.correct:
            print(f"    accepted: {answer!r} for {truth!r}: {verdict.reason}")


def differ(a: str, b: str) -> bool:
    a, b = tidy(a), tidy(b)
    return a != b and (number(a) is None or number(a) != number(b))


def main() -> None:
    with (
        get_verifier("math", workers=WORKERS, timeout=TIMEOUT) as verify,
        get_verifier("llmtrain.verifiers.math_equal:equal", workers=WORKERS, timeout=TIMEOUT) as parsed,
    ):
        speed(verify)
        pathological(verify)
        for path in sorted(p for p in Path(sys.argv[1]).iterdir() if p.suffix in (".parquet", ".jsonl")):
            start = time.perf_counter()
            judge(verify, parsed, path)
            print(f"    {time.perf_counter() - start:.1f} s", flush=True)
        print(f"failures: {dict(verify.failures)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.verifiers DATA")
    main()
