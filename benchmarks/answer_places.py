"""Verdicts of the math verifier on the same answers in a box, in $…$, in bare text and in <answer>…</answer>.

    OMP_NUM_THREADS=1 python -m benchmarks.answer_places            # one table, some minutes
    OMP_NUM_THREADS=1 python -m benchmarks.answer_places --rows 100 --shown 20

Right and wrong answers are drawn from answer_variants.py, answer_forms.py and near_misses.py, as many from each kind as
`--rows` allows. A closing sentence has a mark ("The answer is") or none ("So we get"). Whatever a box accepts or
refuses, the other places have to. The last lines are the solutions of GSM8K without their line "#### n".
"""

import argparse
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from llmtrain.verifiers import Verifier, get_verifier

from .answer_forms import same
from .answer_variant_cases import OWN, WRONG_OWN
from .answer_variant_misses import WRONG
from .answer_variant_rules import RIGHT, Raw
from .answer_variants import Case, cases, real_truths
from .near_misses import other
from .red_team import data_folder, table

ROWS, SOLUTIONS = 700, 3000
"""Answers drawn, half of them right, and solutions of GSM8K."""
PLACES = {
    "box": "The answer is \\boxed{%s}.",
    "`$…$`, mark": "The answer is $%s$.",
    "`$…$`": "So we get $%s$.",
    "bare, mark": "The answer is %s.",
    "bare": "So we get %s.",
    "`<answer>`": "<think>\nLet me see: 5, 7.\n</think>\n<answer>%s</answer>",
}


class Judged(NamedTuple):
    """Answer in a place, and whether the verdict on it is that of its kind."""

    place: str
    case: Case
    right: bool
    accepted: bool


def drawn(count: int, right: bool) -> list[Case]:
    """Return `count` answers, kinds in turn; those that name their own place are left out."""
    rules, own, rewritten = (RIGHT, OWN, same) if right else (WRONG, WRONG_OWN, other)
    by_kind = defaultdict[str, list[Case]](list)
    for case in cases(rules, own, each=count):
        if not isinstance(case.answer, Raw):
            by_kind[case.rule].append(case)
    for truth, prompt in real_truths():
        for kind, answer in rewritten(truth):
            if right or "".join(answer.split()) != "".join(truth.split()):
                by_kind[f"form: {kind}"].append(Case(kind, answer, truth, prompt))
    rng = random.Random(0)
    orders = [rng.sample(found, len(found)) for found in by_kind.values()]
    turns = (case for turn in range(count) for order in orders for case in order[turn : turn + 1])
    return [case for case, _ in zip(turns, range(count), strict=False)]


def placed(listed: Sequence[Case]) -> Iterator[tuple[str, Case, str]]:
    """Yield (place, case, response): no formula within a formula, and no LaTeX in bare text."""
    for case in listed:
        for place, form in PLACES.items():
            if "$…$" in place and re.search(r"\$|\\\(|\\\[|\n\n", case.answer):
                continue
            if "bare" in place and re.search(r"[\\\n$]|[.!?]\s|[.!?]$", case.answer):
                continue
            if place == "bare" and not re.search(r"\d", case.answer):
                continue
            yield place, case, form % case.answer


def judge(verify: Verifier, listed: Sequence[Case], right: bool) -> list[Judged]:
    tried = list(placed(listed))
    verdicts = verify([text for *_, text in tried], [case.truth for _, case, _ in tried])
    return [
        Judged(place, case, right, verdict.correct) for (place, case, _), verdict in zip(tried, verdicts, strict=True)
    ]


def page(judged: Sequence[Judged]) -> str:
    """Return a table of the wrong verdicts by place, also of those that a box does not have."""
    in_box = {(each.case[1:3], each.right): each.accepted for each in judged if each.place == "box"}
    rows = []
    for place in PLACES:
        row = [place]
        for right in (True, False):
            found = [each for each in judged if each.place == place and each.right is right]
            wrong = [each for each in found if each.accepted is not right]
            alone = sum(in_box[each.case[1:3], right] is right for each in wrong)
            row += [f"{len(found):,}", f"{len(wrong):,}", f"{alone:,}"]
        rows.append(row)
    heads = ["right answers", "refused", "not in a box", "wrong answers", "accepted", "not in a box"]
    return table(["place", *heads], rows)


def solutions(count: int) -> list[tuple[str, str]]:
    """Return (solution without its line "#### n", n) of GSM8K's training problems."""
    lines = (data_folder() / "gsm8k_train.jsonl").read_text().splitlines()[:count]
    return [tuple(map(str.strip, json.loads(line)["answer"].split("####"))) for line in lines]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS, help="answers drawn")
    parser.add_argument("--solutions", type=int, default=SOLUTIONS, help="solutions of GSM8K")
    parser.add_argument("--shown", type=int, default=0, help="wrong verdicts shown for each place")
    given = parser.parse_args(arguments)
    with get_verifier("math", workers=1, timeout=5.0) as verify:
        judged = [each for right in (True, False) for each in judge(verify, drawn(given.rows // 2, right), right)]
        print(page(judged), end="\n\n")
        for place in PLACES:
            wrong = [each for each in judged if each.place == place and each.accepted is not each.right]
            for each in wrong[: given.shown]:
                verdict = "accepted" if each.accepted else "refused"
                print(f"{place}: {verdict} `{each.case.answer}` for `{each.case.truth}`")
        texts, truths = zip(*solutions(given.solutions), strict=True)
        accepted = sum(verdict.correct for verdict in verify(texts, truths))
        print(f"Solutions of GSM8K without a mark: {accepted:,} of {len(texts):,} right.")
    return int(any(each.accepted and not each.right for each in judged))


if __name__ == "__main__":
    sys.exit(main())
