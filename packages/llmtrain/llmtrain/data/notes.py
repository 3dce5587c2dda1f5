"""Notes on a table that was read: what of it the questions may lack. Each is a warning of one line.

- columns that are neither used nor known to be about the question, its answer or its origin
- questions with LaTeX commands that have lost their backslash
- rows with two columns that name different options
- other forms of an answer, of which only one is read
- ground truths that are objects of no verifier of ours
"""

import re
import warnings
from typing import Any

from ..process.local_ranks import is_first
from ..process.text import one_line
from .backslashes import lost_backslash
from .choices import Choices
from .columns import ANSWERS, Columns, cell, shown
from .question import Question
from .table import Table

SHOWN = 5
"""Columns that a note names."""
_ABOUT = re.compile(
    r"""(?!image|video|audio)(?:.*_)?(?:
        ids?|uu?id|idx|index|ind|hash|key|num|number|no|rank|count|length|tokens|urls?|links?|files?|path
        |split|sources?|src|origin|dataset|subset|platform|author|license|year|date|time|title|name|grade|school|lang|language
        |(?:sub)?domain|subfield|(?:sub)?subject|category|topic|concept|type|kind|style|level|difficulty|ability|task|tags?
        |modality|version|metadata|meta|info|phrases|string|score|rate|reward|quality|valid|verified|complete|synthetic|error
        |accuracy|correctness|clarity|estimate|reasons|unit|formatted|concat
        |solutions?|rationale|explanation|exp|reason|reasoning|cot|thoughts?|proof|equation|formula|labels?
        |fact\d?|ctx_[ab]|field|discipline|anonymized|constraint
        |responses?|generations?|completions?|outputs?|inferences|messages|conversations?
    )|(?:is|has|cot|correctness|gpt|meta|extra|reward|test|self|post|pre|feedback)_.*
    |(?:.*_)?(?:validator|writer|revis(?:ed|ion)|ev)(?:_.*)?|__.*""",
    re.VERBOSE,
)
"""Names of columns about a question, its answer or its origin; those of the last line are GPQA's and of pandas."""
FORMS = frozenset(
    ("input", "inputs", "input_output", "test", "tests", "test_cases", "fn_name", "numbers", "instruction_id_list")
)
"""Keys of ground truths that are objects, of the verifiers `python`, `countdown` and `ifeval`."""
OTHERS = {"answer.value": "answer.aliases"}
"""Fields with other forms of an answer, by its own field, as in TriviaQA."""
KNOWN = frozenset(("prompt", "question", "problem", "data_source", "reward_model", *ANSWERS))
"""Other names: a prompt holds what these do, or they are answers."""


class DataWarning(UserWarning):
    """A file was read, and its questions may lack something."""


class Notes:
    """Notes on a table while its rows are read."""

    def __init__(self, table: Table, columns: Any, judged: bool = False) -> None:
        """columns: columns that `read` takes the questions from. judged: a verifier has looked at the ground truths."""
        self.table, self.names = table, columns.names
        self.choices = columns if isinstance(columns, Choices) else None
        self.of = self.choices.columns if self.choices else columns if isinstance(columns, Columns) else None
        self.broken, self.broken_first = 0, ""
        self.differ, self.differ_first = 0, ""
        self.objects, self.objects_first = 0, ""
        self.judged = judged
        self.texts = False
        """Some prompt of a plain text was seen."""

    def see(self, row: dict[str, Any], question: Question) -> None:
        """Look at a row and its question."""
        if lost := lost_backslash(question.text) or lost_backslash(question.solution):
            self.broken += 1
            self.broken_first = self.broken_first or f"{lost} in {question.where.rpartition(', ')[2]}"
        if self.choices and (said := self.choices.disagreement(row)):
            self.differ += 1
            self.differ_first = self.differ_first or f"in {question.where.rpartition(', ')[2]} {said}"
        truth = question.ground_truth
        if not self.judged and isinstance(truth, dict) and not truth.keys() & FORMS:
            self.objects += 1
            self.objects_first = self.objects_first or f"{shown(truth)} in {question.where.rpartition(', ')[2]}"
        self.texts = self.texts or self.of is None or isinstance(cell(row, self.of.prompt), str)

    def tell(self, used: list[str]) -> None:
        """Warn of what was found, on the first rank. used: columns that were read for another purpose."""
        if not is_first():
            return
        found = []
        if unread := [name for name in self._unread(used) if not about(name)]:
            more = f" and {len(unread) - SHOWN} more" if len(unread) > SHOWN else ""
            found.append(f"columns that are not used: {', '.join(one_line(c, 40) for c in unread[:SHOWN])}{more}")
        if self.broken:
            found.append(
                f"{_rows(self.broken)} with control characters for backslashes, the first {self.broken_first}: "
                "in JSON a backslash is written twice"
            )
        if self.differ:
            found.append(
                f"{_rows(self.differ)} with columns that name different options, the first {self.differ_first}"
            )
        if self.choices and self.choices.unsure:
            column, first = self.choices.unsure, self.choices.firsts[self.choices.unsure]
            found.append(f"numbers in {column!r} are taken to count from {first}: none is 0 or the number of options")
        if self.objects:
            found.append(
                f"{_rows(self.objects)} with an object for the ground truth, the first {self.objects_first}, which "
                "none of our verifiers reads: name a field by answer_key, as in answer.value, or use your own verifier"
            )
        if self.of and (others := OTHERS.get(self.of.answer)) and others in self.table.columns:
            found.append(f"other forms of the answer in {others!r} are not read: only {self.of.answer!r} is right")
        for said in found:
            warnings.warn(f"{self.table.name}: {said}", DataWarning, stacklevel=2)

    def _unread(self, used: list[str]) -> list[str]:
        """Return the columns, without fields, that are not read, or not used since all prompts are messages."""
        names = [*self.names, *used]
        if self.of and not self.texts:
            names = [name for name in names if name not in (*self.of.before, self.of.after)]
        read = {name if name in self.table.columns and "." not in name else name.partition(".")[0] for name in names}
        return [name for name in self.table.columns if "." not in name and name not in read]


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count > 1)}"


def about(name: str) -> bool:
    """Return True for the name of a column that a prompt does not need."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s'-]", "_", name).lower()
    return not words or words in KNOWN or bool(_ABOUT.fullmatch(words))
