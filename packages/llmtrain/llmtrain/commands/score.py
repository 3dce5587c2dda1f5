"""llmtrain score: verdicts on responses in a file.

    llmtrain score --verifier math --in responses.jsonl --out verdicts.jsonl

Each input line is an object with `response` and `ground_truth`; each output line is its verdict:
{"correct": true, "extracted": "42", "reason": "equal as text"}. Lines skipped by --skip-bad have no verdict.
With `--verifier "math apps=python"` lines whose `data_source` is apps have another verifier. A line may also have the
`prompt`, as text or chat messages: only with it does `math` refuse a formula copied from the question, and the verdict
says whether a correct answer is `copied`.
"""

import json
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from entrostat.settings.commandline import Arguments, writing

from ..process.progress import Bar
from ..verifiers.math.truths import Usable, anything, usable
from ..verifiers.verifier import Verifier
from ..verifiers.verifier_registry import VERIFIERS, get_verifier

AT_A_TIME = 512
FIELDS = ("response", "ground_truth")


class Row(NamedTuple):
    """Line of the input."""

    response: str
    ground_truth: Any
    source: str
    """`data_source`, if the line has one, for verifiers by source."""
    prompt: Any
    """`prompt`, or None."""


def main(args: list[str]) -> int:
    """Judge the responses in a file, and return exit code 0."""
    parser = Arguments(prog="llmtrain score", description=__doc__)
    parser.add_argument("--verifier", required=True, help=f"{', '.join(VERIFIERS)}, a plug-in's, or module:function")
    parser.add_argument("--answer-after", default="", metavar="MARK", help='mark before an answer, such as "</think>"')
    parser.add_argument("--in", dest="source", required=True, help="jsonl: response, ground_truth, perhaps prompt")
    parser.add_argument("--out", required=True, help="jsonl to write: correct, extracted, reason")
    parser.add_argument("--workers", type=int, default=2, help="parallel checks")
    parser.add_argument("--timeout", type=float, default=5.0, help="time limit per response (seconds)")
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --out")
    parser.add_argument("--skip-bad", action="store_true", help="skip and count lines that cannot be read")
    given = parser.parse_args(args)
    source, out = Path(given.source), Path(given.out)
    if not source.is_file():
        raise ValueError(f"{source} is not a file")
    if out.resolve() == source.resolve():
        raise ValueError(f"--out {out} is the input itself")
    if out.exists() and not given.overwrite:
        raise ValueError(f"{out} exists: choose another --out, or pass --overwrite")
    bad: list[str] = []
    limits = {"workers": given.workers, "timeout": given.timeout}
    with get_verifier(given.verifier, **limits, answer_after=given.answer_after) as verifier:
        judged, correct = _score(verifier, source, out, bad if given.skip_bad else None, usable(given.verifier))
    lost = "".join(f", {n} {kind}" for kind, n in sorted(verifier.failures.items()))
    skipped = f", {len(bad)} lines skipped (the first: {bad[0]})" if bad else ""
    share = f" ({correct / judged:.1%})" if judged else ""
    print(f"{out}: {judged} judged, {correct} correct{share}{lost}{skipped}")
    return 0


def _score(verifier: Verifier, source: Path, out: Path, bad: list[str] | None, check: Usable) -> tuple[int, int]:
    """Write the verdicts; return their number, and the number of correct ones."""
    judged = correct = 0
    unread: list[str] | None = None if bad is None else []
    total = sum(1 for _ in read(source, unread, check))  # find bad lines before any work
    if not total:
        raise ValueError(f"{source} has no line to judge" + (f": {unread[0]}" if unread else ""))
    out.parent.mkdir(parents=True, exist_ok=True)
    with writing(out), Bar("score", total, console=Console(stderr=True)) as bar, out.open("w") as file_out:
        rows = read(source, bad, check)
        while batch := list(islice(rows, AT_A_TIME)):
            responses, truths, sources, prompts = zip(*batch, strict=True)
            for verdict, prompt in zip(verifier(responses, truths, sources, prompts), prompts, strict=True):
                line = {"correct": verdict.correct, "extracted": verdict.extracted, "reason": verdict.reason}
                line |= {} if prompt is None else {"copied": verdict.copied}
                file_out.write(json.dumps(line) + "\n")
                correct += verdict.correct
                judged += 1
            bar.show(advance=len(batch), numbers=f"{correct / judged:.1%} correct")
    return judged, correct


def _report(problem: str, bad: list[str] | None) -> None:
    if bad is None:
        raise ValueError(f"{problem}; --skip-bad skips such lines") from None
    bad.append(problem)


def read(source: Path, bad: list[str] | None = None, check: Usable = anything) -> Iterator[Row]:
    """Yield the lines that are not empty.

    bad: receives a message for each bad line. check: raises ValueError for a bad ground truth.

    Raises:
        ValueError: for a bad line, with file, line and field, if `bad` is None.
    """
    with source.open("rb") as file:
        for i, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield Row(*_fields(line, check))
            except ValueError as error:
                _report(f"{source}, line {i}: {error}", bad)


def _fields(line: bytes, check: Usable) -> tuple[str, Any, str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"expected an object with {' and '.join(FIELDS)}, got {type(row).__name__}")
    for field in FIELDS:
        value = row.get(field)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise ValueError(f"field {field!r} is missing")
    if not isinstance(row["response"], str):
        raise ValueError(f"field 'response' is {type(row['response']).__name__}, not text")
    if row["ground_truth"] == "":
        raise ValueError("field 'ground_truth' is empty")
    source = str(row.get("data_source") or "")
    try:
        check(row["ground_truth"], source)
    except ValueError as error:
        raise ValueError(f"field 'ground_truth': {error}") from None
    return row["response"], row["ground_truth"], source, row.get("prompt")
