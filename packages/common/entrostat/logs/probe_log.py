"""Answers to probes, token by token: the file probes.jsonl.gz of a run folder.

Probes are fixed questions that a run answers every few steps, always with the same random numbers. The file has one
gzip member per step, so `zcat` reads it; a line is one answer:

    step, probe, sample           rollout step, index of the question and of its answer
    prompt, response, reward      text, and the verifier's reward
    tokens, logp, entropy, …      lists with one entry per token, as in samples.jsonl (see `runlog`)

A member that a crash cut off is left out by readers.
"""

import gzip
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FILE = "probes.jsonl.gz"
LARGEST = 256 * 2**20
"""Upper limit for what a reader unpacks of one file, bytes."""
_GZIP = 31
"""Window bits of zlib's decompressor for gzip."""


def append_probes(folder: Path, step: int, answers: Sequence[Mapping[str, Any]]) -> None:
    """Append the answers of a step, JSON values, to the folder's file."""
    lines = "".join(json.dumps({"step": step, **answer}, ensure_ascii=False) + "\n" for answer in answers)
    with (folder / FILE).open("ab") as file:
        file.write(gzip.compress(lines.encode(), mtime=0))


def keep_probes(folder: Path, before: int | None) -> None:
    """Remove the answers of step `before` and later from the folder's file; None removes the file."""
    path = folder / FILE
    if before is None or not path.exists():
        path.unlink(missing_ok=True)
        return
    kept = [text for step, text in read_probes(path.read_bytes(), limit=None).items() if step < before]
    part = path.with_name(path.name + ".part")
    part.write_bytes(b"".join(gzip.compress(text, mtime=0) for text in kept))
    os.replace(part, path)


def read_probes(packed: bytes, limit: int | None = LARGEST) -> dict[int, bytes]:
    """Return the lines of each step in the bytes of a file, by step; `parse_probes` reads them.

    Stops at a member that is damaged, that has no step, or with which more than `limit` bytes would be unpacked.
    """
    found: dict[int, bytes] = {}
    while packed:
        member = zlib.decompressobj(_GZIP)
        try:
            text = member.decompress(packed, 0 if limit is None else limit + 1)
            step = json.loads(text.partition(b"\n")[0])["step"]
        except (zlib.error, ValueError, TypeError, KeyError, RecursionError):
            break
        if not member.eof or type(step) is not int or (limit is not None and len(text) > limit):
            break
        found[step] = text
        packed, limit = member.unused_data, None if limit is None else limit - len(text)
    return found


def parse_probes(text: bytes) -> list[dict[str, Any]]:
    """Return the answers on the lines of a step. Raises ValueError if a line is no JSON object."""
    answers = [json.loads(line) for line in text.splitlines()]
    if not all(isinstance(answer, dict) for answer in answers):
        raise ValueError("a line is not a JSON object")
    return answers
