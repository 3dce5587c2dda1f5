"""Small files of questions."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def jsonl(tmp_path):
    """Writes a jsonl file: objects as JSON, text and bytes as they are."""

    def write(rows, name="questions.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [r if isinstance(r, bytes) else (r if isinstance(r, str) else json.dumps(r)).encode() for r in rows]
        path.write_bytes(b"\n".join(lines) + b"\n")
        return str(path)

    return write


@pytest.fixture
def parquet(tmp_path):
    """Writes a parquet file of several row groups."""

    def write(rows, name="questions.parquet"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
        return str(path)

    return write


@pytest.fixture
def verl():
    """Makes a row in verl's form."""

    def row(content, truth, source="sums", role="user"):
        return {
            "data_source": source,
            "prompt": [{"content": content, "role": role}],
            "ability": "MATH",
            "reward_model": {"ground_truth": truth, "style": "rule"},
            "extra_info": {"index": 0},
        }

    return row
