"""Questions written to a parquet file in verl's form, from which `read` returns the same questions."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from warnings import catch_warnings

from entrostat.settings.commandline import writing

from ..process.text import one_line
from .notes import DataWarning
from .question import Question
from .read import read


def write(questions: Sequence[Question], path: str | Path) -> None:
    """Write `questions` to `path`, each in as many rows as it repeats, replacing an existing file.

    Columns: data_source, prompt, reward_model (ground_truth, style), solution, extra_info (index).

    Raises:
        ValueError: for a path that does not end in .parquet, and for questions that do not fit a table with one type
            per column, such as a mix of chat messages and plain text. An existing file is then unchanged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    if path.suffix != ".parquet":
        raise ValueError(f"{path}: the file to write must end in .parquet")
    rows = [_row(i, question) for i, question in enumerate(questions) for _ in range(question.repeats)]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.part.parquet")
    try:
        with writing(path):
            pq.write_table(pa.Table.from_pylist(rows), part)
        with catch_warnings(action="ignore", category=DataWarning):  # they were told when the questions were read
            found = read(str(part)).questions
        for one, other in zip(questions, found, strict=True):
            if _what(one) != _what(other):
                raise ValueError(f"{one.where}: reading it back gives a different question")
        part.replace(path)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{path} cannot be written: {one_line(error)}") from None
    finally:
        part.unlink(missing_ok=True)


def _row(index: int, question: Question) -> dict[str, Any]:
    prompt = question.prompt
    return {
        "data_source": question.source,
        "prompt": prompt if isinstance(prompt, str) else list(prompt),
        "reward_model": {"ground_truth": question.ground_truth, "style": "rule"},
        "solution": question.solution,
        "extra_info": {"index": index},
    }


def _what(question: Question) -> tuple[Any, ...]:
    truth = json.dumps(question.ground_truth, sort_keys=True, default=repr)  # 1 == 1.0, but their texts differ
    return question.prompt, truth, question.source, question.solution, question.repeats
