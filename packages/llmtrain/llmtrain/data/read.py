"""Questions from a file, a folder, or a data set of the HF hub.

    questions, skipped = read("aime24.parquet")              # 30 questions, each with repeats=32
    read("gsm8k_train.jsonl"), read("openai/gsm8k:main", split="test"), read("folder", skip_bad=True)

Formats: parquet (verl's form, plain columns, multiple choice, LiveCodeBench, IF-Eval), jsonl, json, csv, folders of
these, and data sets saved by `datasets`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..verifiers.if_eval import instructions
from .choices import Choices
from .columns import Columns, parse_prompt, shown
from .live_code import LiveCode
from .notes import Notes
from .question import Prompt, Question
from .row_filter import RowFilter
from .table import Table
from .tables import tables

COLUMNS = ("prompt", "instruction_id_list", "kwargs")
SOURCE = "ifeval"
"""Source of all questions, whatever the name of their file."""


@dataclass(frozen=True)
class InstructionRows:
    """Columns of IF-Eval; same interface as `Columns`."""

    names: tuple[str, ...] = COLUMNS
    """Names of the columns to read."""

    @staticmethod
    def of(table: Table) -> "InstructionRows | None":
        """Return the columns if a table has all of them, else None."""
        return InstructionRows() if set(COLUMNS) <= set(table.columns) else None

    def question(self, row: dict[str, Any], source: str, where: str) -> Question:
        """Return the question in a row. Raises ValueError naming the column, if a value is missing or wrong."""
        try:
            prompt = parse_prompt(row.get("prompt"))
        except ValueError as error:
            raise ValueError(f"column 'prompt' {error}") from None
        names, arguments = row.get("instruction_id_list"), row.get("kwargs")
        if not isinstance(names, list) or not names:
            raise ValueError("column 'instruction_id_list' is no list of names")
        if not isinstance(arguments, list) or len(arguments) != len(names):
            raise ValueError(f"column 'kwargs' is no list of {len(names)} objects, one for each instruction")
        try:
            names, given = instructions({"instruction_id_list": names, "kwargs": arguments})
        except ValueError as error:
            raise ValueError(f"column 'kwargs' cannot be checked: {error}") from None
        return Question(prompt, {"instruction_id_list": names, "kwargs": given}, SOURCE, where=where)


class Read(NamedTuple):
    """Questions, and messages about skipped rows."""

    questions: list[Question]
    """Questions in file order."""
    skipped: list[str]
    """One line per bad row, with file, row and column."""


def read(
    name: str,
    *,
    prompt_key: str = "",
    answer_key: str = "",
    source_key: str = "",
    split: str = "train",
    skip_bad: bool = False,
    usable: Callable[[Any, str], object] | None = None,
    keep: RowFilter | None = None,
    label: str = "",
    keep_columns: bool = False,
    choice_seed: int = 0,
) -> Read:
    """Return the questions of `name`, each once.

    A DataWarning for each file names columns that are not used, questions that have lost backslashes, and columns that
    name different answers.

    Rows with the same source, prompt and ground truth are one question, with their number in `repeats`; the first
    worked solution is kept. Rows with the same source and prompt but different ground truths contradict each other, so
    all of them are bad.

    Args:
        name: file, folder, or name on the hub ("openai/gsm8k:main" is name and configuration). A folder may come from
            `datasets.save_to_disk`.
        prompt_key: column of the prompt, dotted for a field within a column; "" for the first of `columns.PROMPTS`.
        answer_key: column of the ground truth; "" for the first of `columns.ANSWERS`.
        source_key: column of the source, by which results are told apart, such as `level`; "" for `data_source`.
        split: split of a folder or a data set of the hub; a file is read completely.
        usable: takes a ground truth and its source, and raises ValueError if the caller cannot use it; its row is bad.
        keep: rows to keep; others are not looked at. None keeps all.
        label: name of the data set for rows that do not name one, instead of its own name; see `labels`.
        keep_columns: keep all columns of a row in `Question.columns`.
        choice_seed: seed of the order of options in multiple-choice questions; see `choices`.
        skip_bad: skip bad rows and describe them in `skipped`; if False the first one raises.

    Raises:
        ValueError: in one line, with file, row and column. Rows and lines count from 1. A broken file, a
            missing column, and a file without any good row are errors with `skip_bad` too.
    """
    bad: list[str] = []
    keep = keep or RowFilter()
    groups: dict[Any, list[Question]] = {}
    for where, found in _rows(
        tables(name, split, label), (prompt_key, answer_key, source_key), usable, keep, keep_columns, choice_seed
    ):
        if isinstance(found, Question):
            groups.setdefault((found.source, _asked(found.prompt)), []).append(found)
        else:
            _report(f"{where}: {found}", bad, skip_bad)
    questions = []
    for group in groups.values():
        against = next((q for q in group if not _same(q.ground_truth, group[0].ground_truth)), None)
        if against is None:
            solution = next((q.solution for q in group if q.solution), None)
            questions.append(replace(group[0], repeats=len(group), solution=solution))
            continue
        for one in group:
            other = group[0] if one is not group[0] else against
            truths = f"{shown(one.ground_truth)} here, {shown(other.ground_truth)} there"
            _report(f"{one.where}: contradicts {other.where}: same prompt, ground truth {truths}", bad, skip_bad)
    if not questions:
        problem = f"good row: {bad[0]}" if bad else f"row with {keep}: {keep.told}"
        raise ValueError(f"{name} has no {problem}")
    return Read(questions, bad)


def _rows(
    found: Iterator[Table],
    keys: tuple[str, str, str],
    usable: Callable[[Any, str], object] | None,
    keep: RowFilter,
    keep_columns: bool,
    choice_seed: int,
) -> Iterator[tuple[str, Question | ValueError]]:
    """Yield the place of each row, with its question or its error."""
    for table in found:
        columns = _known(table, choice_seed, keys) or Columns.of(table, *keys).counted(table)
        more = [name for name in table.columns if "." not in name] if keep_columns else []
        filtered, notes = keep.columns(table), Notes(table, columns, judged=usable is not None)
        for number, row in table.rows(list(dict.fromkeys([*columns.names, *filtered, *more]))):
            where = f"{table.name}, {table.unit} {number}"
            try:
                if isinstance(row, ValueError):
                    raise row
                if not keep.keeps(row, filtered):
                    continue
                question = columns.question(row, table.source, where)
                if keep_columns:
                    question = replace(question, columns=row)
                if usable:
                    usable(question.ground_truth, question.source)
            except ValueError as error:
                yield where, error
            else:
                notes.see(row, question)
                yield where, question
        notes.tell([*filtered, *more])


def _known(table: Table, choice_seed: int, keys: tuple[str, str, str]) -> Choices | LiveCode | InstructionRows | None:
    """Return the columns of a benchmark that is published in a form of its own; None for other tables."""
    if any(keys):
        return Choices.of(table, choice_seed, *keys)
    return LiveCode.of(table) or InstructionRows.of(table) or Choices.of(table, choice_seed)


def _asked(prompt: Prompt) -> Any:
    """Return the prompt as a hashable key."""
    return prompt if isinstance(prompt, str) else tuple((m["role"], m["content"]) for m in prompt)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _report(problem: str, bad: list[str], skip_bad: bool) -> None:
    if not skip_bad:
        raise ValueError(f"{problem}; --skip-bad (in training --data.skip-bad) skips such rows")
    bad.append(problem)
