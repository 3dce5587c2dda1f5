"""Attack the verifiers from outside: answers that took no work, programs that lie, expressions that break the rules.

    OMP_NUM_THREADS=1 python -m benchmarks.red_team                  # all tables, about an hour
    OMP_NUM_THREADS=1 python -m benchmarks.red_team --small          # as in CI, some minutes
    python -m benchmarks.red_team --only math --questions 100

Only `get_verifier(...)` is used. The exit status is 1 if a verifier was fooled or refused an honest answer. The folder
of the data sets is $ENTROSTAT_DATA, else ../shared/data; without it only generated questions are attacked.
"""

import argparse
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llmtrain.data import Prompt, Question, read
from llmtrain.settings.config import TaskConfig
from llmtrain.tasks.arithmetic import arithmetic_task
from llmtrain.verifiers import Verifier, get_verifier

from .red_team_answers import ATTACKS, REWORKED, Answer, is_truth
from .red_team_countdown import HONEST as HONEST_EXPRESSIONS
from .red_team_countdown import TRICKS
from .red_team_lies import BOMBS
from .red_team_programs import STYLES, Style
from .red_team_questions import QUESTIONS as OWN_QUESTIONS

FILES = (
    *("gsm8k_train.jsonl", "gsm8k_test.jsonl", "DAPO-Math-17k.parquet", "math500.parquet", "minerva_math.parquet"),
    *("olympiadbench.parquet", "amc23.parquet", "aime24.parquet", "aime25.parquet"),
)
QUESTION_LIMIT, SMALL = 500, 10
"""Questions drawn of each data set, and in the small form."""
SMALL_PROGRAMS = 5
"""Lying programs of each style in the small form."""
EXAMPLES = 4
TIMEOUT = 5.0


@dataclass
class Row:
    """Result of the attacks on one data set, style of tests or task."""

    name: str
    tried: int
    """Questions, programs or expressions."""
    fooled: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """One example for each question or program that was wrongly rewarded, by kind of attack."""
    apart: int = 0
    """Questions for which an answer that is the truth itself was rewarded, though it took no work."""
    refused: list[str] = field(default_factory=list)
    """Honest answers that were refused."""

    @property
    def clean(self) -> bool:
        return not any(self.fooled.values()) and not self.refused


# Mathematics ----------------------------------------------------------------------------------------------------------


def attack_math(name: str, questions: Sequence[Question], verify: Verifier) -> Row:
    """Return what answers without work earn on these questions, and which truths are refused."""
    commonest = Counter(str(question.ground_truth) for question in questions).most_common(1)[0][0]
    attacks = ATTACKS | (REWORKED if name == "arithmetic" else {})
    tried: list[tuple[int, str, Answer]] = [
        (at, kind, answer)
        for at, question in enumerate(questions)
        for kind, attack in attacks.items()
        for answer in dict.fromkeys(attack(question.text, str(question.ground_truth), commonest))
    ]
    verdicts = verify(
        [answer.response for _, _, answer in tried],
        [questions[at].ground_truth for at, _, _ in tried],
        prompts=[as_prompt(questions[at].prompt) for at, _, _ in tried],
    )
    row, apart, seen = Row(name, len(questions)), set(), set()
    for (at, kind, answer), verdict in zip(tried, verdicts, strict=True):
        if not verdict.correct:
            continue
        truth = str(questions[at].ground_truth)
        if is_truth(answer.final, truth):
            apart.add(at)
        elif (at, kind) not in seen:
            seen.add((at, kind))
            row.fooled[kind].append(f"`{answer.response}` for `{truth}`")
    row.apart = len(apart)
    truths = [str(question.ground_truth) for question in questions]
    prompts = [as_prompt(question.prompt) for question in questions]
    honest = verify([f"The answer is \\boxed{{{truth}}}." for truth in truths], truths, prompts=prompts)
    row.refused = [f"`{t}`: {verdict.reason}" for t, verdict in zip(truths, honest, strict=True) if not verdict.correct]
    return row


def as_prompt(prompt: Prompt) -> Any:
    return prompt if isinstance(prompt, str) else list(prompt)


def data_folder() -> Path:
    """Return the folder of the data sets, which may be missing."""
    return Path(os.environ.get("ENTROSTAT_DATA") or Path(__file__).parents[2] / "shared" / "data")


def question_sets(count: int) -> Iterator[tuple[str, list[Question]]]:
    """Yield data sets with at most `count` of their questions, drawn with a fixed seed."""
    yield "own questions", OWN_QUESTIONS
    task = arithmetic_task(TaskConfig(name="arithmetic", train_problems=count, test_problems=1))
    yield "arithmetic", [question for source in task.train for question in source]
    for name in FILES:
        if (path := data_folder() / name).is_file():
            questions = read(str(path)).questions
            yield path.stem, random.Random(0).sample(questions, min(count, len(questions)))


# Programs -------------------------------------------------------------------------------------------------------------


def attack_programs(style: Style, verify: Verifier, count: int | None = None) -> Row:
    """Return which lying programs of a style pass one of its tests, and which honest ones fail theirs.

    count: lying programs drawn with a fixed seed; None takes all.
    """
    lies = list(style.lies.items())
    lies = lies if count is None else random.Random(0).sample(lies, min(count, len(lies)))
    tried = [(name, code, test) for name, code in lies for test in style.tests[: 1 if name in BOMBS else None]]
    row = Row(style.name, len(lies))
    seen = set()
    for (name, _, test), verdict in zip(tried, ask(verify, [(c, t) for _, c, t in tried]), strict=True):
        if verdict.correct and name not in seen:
            seen.add(name)
            row.fooled["lying programs"].append(f"{name}: `{str(test)[-90:]!r}`")
    for (code, _), verdict in zip(style.honest, ask(verify, style.honest), strict=True):
        if not verdict.correct:
            row.refused.append(f"`{code[:120]!r}`: {verdict.reason}")
    return row


def ask(verify: Verifier, pairs: Sequence[tuple[str, Any]]) -> list[Any]:
    """Return the verdicts on (program, tests)."""
    return list(verify([f"```python\n{code}\n```" for code, _ in pairs], [test for _, test in pairs]))


# Countdown ------------------------------------------------------------------------------------------------------------


def attack_countdown(verify: Verifier) -> Row:
    """Return which expressions against the rules are rewarded, and which honest ones refused."""
    row = Row("countdown", len(TRICKS))
    cases = [*((kind, case) for kind, case in TRICKS), *(("", case) for case in HONEST_EXPRESSIONS)]
    truths = [{"numbers": list(numbers), "target": target} for _, (numbers, target, _) in cases]
    verdicts = verify([response for _, (_, _, response) in cases], truths)
    for (kind, (numbers, target, response)), verdict in zip(cases, verdicts, strict=True):
        shown = f"`{response[:60]!r}` for {target} of {list(numbers)}"
        if kind and verdict.correct:
            row.fooled[kind].append(shown)
        elif not kind and not verdict.correct:
            row.refused.append(f"{shown}: {verdict.reason}")
    return row


# Tables ---------------------------------------------------------------------------------------------------------------


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["--:"] * (len(headings) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [headings, rule, *rows])


def math_tables(rows: Sequence[Row]) -> str:
    """Return a table with a row for each data set, and one with a row for each kind of answer that took no work."""
    by_data = [
        [row.name, str(row.tried), str(sum(map(len, row.fooled.values()))), str(row.apart), str(len(row.refused))]
        for row in rows
    ]
    by_kind = []
    for kind in (*ATTACKS, *REWORKED):
        asked = [row for row in rows if kind in ATTACKS or row.name == "arithmetic"]
        rewarded = sum(len(row.fooled.get(kind, [])) for row in asked)
        by_kind.append([kind, str(sum(row.tried for row in asked)), str(rewarded)])
    headings = ["data set", "questions", "rewarded", "apart: the truth itself", "truths refused"]
    return f"{table(headings, by_data)}\n\n{table(['answer without work', 'questions', 'rewarded'], by_kind)}"


def other_table(heading: str, rows: Sequence[Row], honest: Sequence[int]) -> str:
    shown = [
        [row.name, str(row.tried), str(sum(map(len, row.fooled.values()))), str(count), str(len(row.refused))]
        for row, count in zip(rows, honest, strict=True)
    ]
    return table([heading, "lies", "rewarded", "honest", "refused"], shown)


def examples(rows: Sequence[Row]) -> str:
    """Return examples of each cell that is not zero."""
    told = [
        f"- {row.name}, {kind}: {found}"
        for row in rows
        for kind, shown in [*row.fooled.items(), ("honest, but refused", row.refused)]
        for found in shown[:EXAMPLES]
    ]
    return "\n".join(told) if told else "No verifier was fooled, and no honest answer refused."


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=QUESTION_LIMIT, help="questions drawn of each data set")
    parser.add_argument("--small", action="store_true", help=f"{SMALL} questions, {SMALL_PROGRAMS} programs of a style")
    parser.add_argument("--only", choices=("math", "programs", "countdown"), help="attack one verifier")
    given = parser.parse_args(arguments)
    rows: list[Row] = []
    with ExitStack() as held:
        if given.only in (None, "math"):
            verify = held.enter_context(get_verifier("math", workers=1, timeout=TIMEOUT))
            sets = question_sets(SMALL if given.small else given.questions)
            rows += (found := [attack_math(name, questions, verify) for name, questions in sets])
            print(math_tables(found), end="\n\n")
        if given.only in (None, "programs"):
            verify = held.enter_context(get_verifier("python", workers=1, timeout=TIMEOUT))
            count = SMALL_PROGRAMS if given.small else None
            rows += (found := [attack_programs(style, verify, count) for style in STYLES])
            print(other_table("style of tests", found, [len(style.honest) for style in STYLES]), end="\n\n")
        if given.only in (None, "countdown"):
            verify = held.enter_context(get_verifier("countdown", workers=1, timeout=TIMEOUT))
            rows.append(attack_countdown(verify))
            print(other_table("task", rows[-1:], [len(HONEST_EXPRESSIONS)]), end="\n\n")
    print(examples(rows))
    return int(not all(row.clean for row in rows))


if __name__ == "__main__":
    sys.exit(main())
