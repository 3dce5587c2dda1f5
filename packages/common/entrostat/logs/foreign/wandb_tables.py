"""Tables as CSV or Parquet, a row for each step, such as the exports of Weights & Biases.

Of a CSV the separator is found, a comma, a semicolon, a tab or the bar of a table in Markdown, and the decimal mark. An
empty cell is a gap, and NaN a number that is lost.

A table of several runs has a column that tells them apart, such as `run` or `seed`. A chart's CSV has the columns
`Step`, `RUN - METRIC`, `RUN - METRIC__MIN`, `RUN - METRIC__MAX` for each run in it; the last two are left out. A run's
history has a column for each metric, and `_step`: `run.history().to_csv(...)`, or the Parquet file of the artifact
`run-ID-history`.
"""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from .console_lines import is_console
from .notebooks import title
from .rows import KINDS, LOGGED, RUNS, STEP, LimitedFile, Row, data_columns, row, spelled, step_names, told_data
from .table_numbers import decimal_mark, number

OF_A_CHART = " - "
"""Text between run and metric in a column of a chart."""
EXTREMES = ("__MIN", "__MAX")
OF_RUNS = {"Name", "State"}
"""Columns of W&B's table of runs, which has a row for each run."""
OF_TENSORBOARD = ["wall_time", STEP, "value"]
"""Columns of one of TensorBoard's charts, as `spelled`."""
SEPARATORS = ",;\t|"
RULE = re.compile(r"\s*:?-+:?\s*")
"""Cell of the line under the header of a table in Markdown."""
SAMPLE = 1000
"""Lines of a CSV that tell its decimal mark."""
MOST_CELLS = 50_000_000
"""Upper limit for the cells of a Parquet file."""


def is_csv(head: bytes) -> bool:
    """Return True if a file starts with the header of a table of W&B, and not with a line of a console."""
    header = [] if is_console(head.partition(b"\n")[0]) else header_of(head)
    return len(header) > 1 and (_is_chart(header) or bool(step_names(header)) or set(header) >= OF_RUNS)


def is_parquet(head: bytes) -> bool:
    return head.startswith(b"PAR1")


def header_of(head: bytes) -> list[str]:
    """Return the names in the first line of a CSV; empty if it is none."""
    line = head.partition(b"\n")[0].decode("utf-8", "replace")
    try:
        return _named(next(csv.reader([line], delimiter=_separator(line)), []))
    except csv.Error:
        return []


def _named(header: Sequence[str]) -> list[str]:
    """Return the names of a header, of metrics as the notebook's table titles them."""
    return [name.strip() if OF_A_CHART in name else title(name.strip()) for name in header]


def _separator(header: str) -> str:
    """Return what separates the cells of a line: what it has most of; a comma if it has none."""
    return max(SEPARATORS, key=header.count)


def _is_chart(header: Sequence[str]) -> bool:
    return all(OF_A_CHART in name for name in header[1:])


def is_rule(line: str) -> bool:
    """Return True if a line is that under the header of a table in Markdown."""
    cells = line.strip().strip("|").split("|")
    return all(map(RULE.fullmatch, cells))


def read_csv(file: LimitedFile) -> Iterator[Row]:
    """Yield the rows of a CSV export. Raises ValueError if it has no steps or is no CSV."""
    return read_table(file.lines())


def read_table(lines: Iterator[str]) -> Iterator[Row]:
    """Yield the rows of a table from its lines, the header first. Raises ValueError as `read_csv` does."""
    first = next(lines, "")
    separator = _separator(first)
    rows = csv.reader(chain([first], lines), delimiter=separator)
    try:
        header = _named(next(rows, []))
        _require_names(header)
        if set(header) >= OF_RUNS:
            raise ValueError("is W&B's table of runs, without their steps: export a chart or run.history() instead")
        if [*map(spelled, header)] == OF_TENSORBOARD:
            raise ValueError(
                f"is one of TensorBoard's charts and does not say of what: rename the column {header[2]}, such as to "
                "entropy, or pass the folder of its event files"
            )
        sample = list(islice(rows, SAMPLE))
        if separator == "|" and sample and is_rule("|".join(sample[0])):
            del sample[0]
        _require_columns(header, sample[0] if sample else [])
        mark = decimal_mark(sample, "," if separator == ";" else ".")
        text = {at for at, name in enumerate(header) if name.lower() in (*RUNS, *KINDS)}
        numbers = (
            [cell if at in text else number(cell, mark) for at, cell in enumerate(cells)]
            for cells in chain(sample, rows)
        )
        yield from _of_chart(header, numbers) if _is_chart(header) else _of_history(header, numbers)
    except csv.Error as error:
        raise ValueError(f"is not a CSV file: {error}") from None


def _require_names(header: Sequence[str]) -> None:
    """Raise ValueError if two columns have one name, of which only one could be read."""
    twice = next((name for name, times in Counter(filter(None, header)).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"has two columns named {twice}: rename or remove one of them")


def _require_columns(header: Sequence[str], cells: Sequence[str]) -> None:
    """Raise ValueError if a row has cells beyond the header, as decimal commas between commas make them."""
    if any(cell.strip() for cell in cells[len(header) :]):
        shown = " ".join(",".join(cells).split())[:40]
        raise ValueError(
            f"has {len(cells)} cells under {len(header)} names in its first row, “{shown}”: put numbers with decimal "
            "commas in quotes, or export with semicolons"
        )


def _of_chart(header: Sequence[str], rows: Iterator[Sequence[Any]]) -> Iterator[Row]:
    """Yield a row for each run of a chart; in a chart of several, a run without a value has ended there."""
    columns: dict[str, dict[int, str]] = defaultdict(dict)
    for at, name in enumerate(header):
        run, _, metric = name.rpartition(OF_A_CHART)
        if at and not metric.endswith(EXTREMES):
            columns[run][at] = metric
    steps = {run: next((at for at, metric in found.items() if metric == "_step"), 0) for run, found in columns.items()}
    if step_names([header[0]]) or spelled(header[0].rpartition("/")[2]) in (STEP, LOGGED, "global_step"):
        steps = dict.fromkeys(steps, 0)
    elif not all(steps.values()):
        raise ValueError(f"is a chart over {header[0]}: set the chart's x axis to Step and export it again")
    for cells in rows:
        for run, found in columns.items():
            metrics = {metric: cells[at] for at, metric in found.items() if at < len(cells)}
            if len(columns) > 1 and all(value is None for value in metrics.values()):
                continue
            yield Row(run, cells[steps[run]] if steps[run] < len(cells) else None, metrics)


def _of_history(header: Sequence[str], rows: Iterator[Sequence[Any]]) -> Iterator[Row]:
    steps, last = step_names(header), None
    for cells in rows:
        found = row(dict(zip(header, cells, strict=False)), steps)
        last = last if found.step is None else found.step
        yield found._replace(step=last)  # W&B's history has rows between the steps of training


def read_parquet(file: LimitedFile) -> Iterator[Row]:
    """Yield the rows of a Parquet export. Raises ValueError if it is damaged, too large or has no steps."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.cut:
        raise ValueError(f"is larger than {file.most // 2**20} MiB")
    of_types = pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_large_string
    try:
        table = pq.ParquetFile(file.file)
        names = [column.name for column in table.schema_arrow if any(of_type(column.type) for of_type in of_types)]
        about = table.metadata
        unpacked = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    except Exception:  # what pyarrow raises on damaged files is not documented
        raise ValueError("is a damaged Parquet file: export it again") from None
    if about.num_rows * len(names) > MOST_CELLS or unpacked > 8 * MOST_CELLS:
        raise ValueError(f"holds more than {MOST_CELLS:,} numbers: export fewer columns")
    steps = step_names(names)
    if not steps:
        if columns := data_columns([column.name for column in table.schema_arrow]):
            raise ValueError(f"is {told_data(columns)}")
        raise ValueError("is a Parquet file without a column of steps, such as _step")
    try:
        for batch in table.iter_batches(columns=names):
            for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield row(dict(zip(batch.schema.names, cells, strict=True)), steps)
    except Exception:
        raise ValueError("is a damaged Parquet file: export it again") from None
