"""Share of right answers in other forms that the math verifier accepts, and of wrong near misses that it refuses.

    OMP_NUM_THREADS=1 python -m benchmarks.answer_variants           # both tables, some minutes
    OMP_NUM_THREADS=1 python -m benchmarks.answer_variants --each 2  # small

Rules rewrite real truths of the data sets ($ENTROSTAT_DATA, else ../shared/data) into forms that people and models
write; forms that no real truth has are in answer_variant_cases.py. A question, where there is one, is passed as the
prompt. Nothing here is shared with the verifier or with answer_forms.py.
"""

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from llmtrain.data import read
from llmtrain.verifiers import Verifier, get_verifier

from .answer_variant_cases import OWN, WRONG_OWN
from .answer_variant_misses import WRONG
from .answer_variant_rules import RIGHT, Raw, Rule
from .red_team import FILES, as_prompt, data_folder, table

EACH, NUMBERS, EXAMPLES = 8, 120, 3
"""Real truths for each rule, whole numbers drawn from the data sets, and examples shown for a rule."""


class Case(NamedTuple):
    """Answer with the truth that it is judged by."""

    rule: str
    answer: str
    truth: str
    prompt: Any

    @property
    def response(self) -> str:
        return self.answer if isinstance(self.answer, Raw) else f"The answer is \\boxed{{{self.answer}}}."


@dataclass
class Row:
    """Verdicts on the answers of a rule."""

    rule: str
    answers: int = 0
    accepted: int = 0
    shown: list[str] = field(default_factory=list)
    """Answers that are judged wrongly."""


def real_truths() -> list[tuple[str, Any]]:
    """Return (truth, prompt) of the data sets: each truth once, all that are no whole number, some that are."""
    found: dict[str, Any] = {}
    for name in FILES:
        if (path := data_folder() / name).is_file():
            for question in read(str(path)).questions:
                found.setdefault(str(question.ground_truth).strip(), as_prompt(question.prompt))
    numbers = [truth for truth in found if truth.lstrip("-").isdigit()]
    drawn = set(random.Random(0).sample(numbers, min(NUMBERS, len(numbers))))
    drawn |= {truth for truth in numbers if len(truth) == 1}
    return [(truth, prompt) for truth, prompt in found.items() if truth not in numbers or truth in drawn]


def cases(rules: dict[str, Rule], own: dict[str, Sequence[tuple[str, Any, str]]], each: int = EACH) -> Iterator[Case]:
    """Yield the answers of all rules: of `each` real truths that a rule applies to, and of its own."""
    truths = real_truths()
    for name, rule in rules.items():
        order = random.Random(name).sample(truths, len(truths))
        applied = 0
        for truth, prompt in order:
            answers = [answer for answer in dict.fromkeys(rule(truth, text_of(prompt))) if answer != truth]
            yield from (Case(name, answer, truth, prompt) for answer in answers)
            applied += bool(answers)
            if applied == each:
                break
    yield from (Case(name, *made) for name, listed in own.items() for made in reorder(listed))


def reorder(listed: Sequence[tuple[str, Any, str]]) -> Iterable[tuple[str, str, Any]]:
    return ((answer, truth, prompt) for truth, prompt, answer in listed)


def text_of(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(message["content"] for message in prompt or ())


def judge(verify: Verifier, listed: Sequence[Case], right: bool) -> list[Row]:
    """Return the verdicts by rule; right: whether the answers are."""
    verdicts = verify([c.response for c in listed], [c.truth for c in listed], prompts=[c.prompt or "" for c in listed])
    rows: dict[str, Row] = {}
    for case, verdict in zip(listed, verdicts, strict=True):
        row = rows.setdefault(case.rule, Row(case.rule))
        row.answers += 1
        row.accepted += verdict.correct
        if verdict.correct is not right:
            row.shown.append(f"`{case.answer}` for `{case.truth}`")
    return list(rows.values())


def page(rows: Sequence[Row], right: bool, examples: int) -> str:
    """Return a table by rule; the last row is that of all."""
    total = Row("all", sum(row.answers for row in rows), sum(row.accepted for row in rows))
    shown = [
        [row.rule, str(row.answers), f"{row.accepted / max(1, row.answers):.1%}", ", ".join(row.shown[:examples])]
        for row in [*rows, total]
    ]
    return table(["right answers" if right else "wrong answers", "number", "accepted", "judged wrongly"], shown)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=EACH, help="real truths for each rule")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="examples shown for each rule")
    given = parser.parse_args(arguments)
    accepted = 0
    with get_verifier("math", workers=1, timeout=5.0) as verify:
        for rules, own, right in ((RIGHT, OWN, True), (WRONG, WRONG_OWN, False)):
            rows = judge(verify, list(cases(rules, own, given.each)), right)
            print(page(rows, right, given.examples), end="\n\n")
            accepted += 0 if right else sum(row.accepted for row in rows)
    return int(accepted > 0)


if __name__ == "__main__":
    sys.exit(main())
