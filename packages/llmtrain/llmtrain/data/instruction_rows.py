"""IF-Eval: prompts with instructions to check, from the columns of google/IFEval.

    prompt, instruction_id_list, kwargs

The ground truth is the object of names and arguments that the verifier `ifeval` checks.
"""

from dataclasses import dataclass
from typing import Any

from .columns import parse_prompt
from .question import Question
from .table import Table

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
        given = [{key: value for key, value in (one or {}).items() if value is not None} for one in arguments]
        return Question(prompt, {"instruction_id_list": names, "kwargs": given}, SOURCE, where=where)
