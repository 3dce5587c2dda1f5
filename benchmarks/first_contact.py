"""Evidence from a few minutes of a GPU: pieces in order of worth, each stored as soon as it is there.

    python -m benchmarks.first_contact --out FOLDER [--call 1|2] [--limit SECONDS] [--device cpu] [--model FOLDER]

Call 1 (150 s): decoding captured and as written, the tests that need a GPU, the ledger of a GPU that is shared with
another process, the head's missing rows. Call 2 (380 s): training against TRL, then runs of a study, seed by seed.
A piece is a process of its own with its own limit, and writes FOLDER/PIECE.json, what is ready at first; a piece that
is whole is not run again. `--device cpu` rehearses all of it with models of no size. first_contact.md has the commands
for a machine that has nothing.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import contact_pieces
from benchmarks.contact_pieces import Contact

from llmtrain.kernels.timing import machine

LIMITS = {1: 150.0, 2: 380.0}
"""Seconds of each call."""


@dataclass(frozen=True)
class Piece:
    """A piece of evidence."""

    call: int
    seconds: float
    """Upper limit; 0 for all that is left of the call."""
    run: Callable[[Contact], None]


PIECES = {
    "decode": Piece(1, 45, contact_pieces.decode),
    "tests": Piece(1, 45, contact_pieces.tests),
    "ledger": Piece(1, 40, contact_pieces.ledger),
    "head": Piece(1, 0, contact_pieces.head),
    "trl": Piece(2, 60, contact_pieces.trl),
    "study": Piece(2, 0, contact_pieces.study),
}


def attempt(name: str, seconds: float, given: argparse.Namespace) -> dict[str, Any]:
    """Run a piece in its own process; return how it ended."""
    command = [sys.executable, "-m", "llmtrain.doctor.guard", str(seconds), sys.executable, "-m", __spec__.name]
    command += ["--piece", name, "--out", str(given.out), "--device", given.device]
    command += ["--model", str(given.model)] if given.model else []
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    (given.out / f"{name}.log").write_text(done.stdout)
    said = [line for line in done.stdout.splitlines() if line.strip()]
    ended = "time is up" if done.returncode == 124 else f"exit code {done.returncode}"
    return {
        "seconds": round(time.monotonic() - began, 1),
        "ended": "whole" if done.returncode == 0 else f"{ended}: {said[-1][:300] if said else 'nothing said'}",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--call", type=int, choices=tuple(LIMITS), help="both by default")
    parser.add_argument("--limit", type=float, help="seconds of the whole command; by default 150 and 380 a call")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--model", type=Path, help="folder of SmolLM2-135M-Instruct; without it a tiny model")
    parser.add_argument("--piece", choices=tuple(PIECES), help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.out = given.out.absolute()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.piece:
        PIECES[given.piece].run(Contact(given.device, given.out, given.piece, given.model))
        return 0
    began = time.monotonic()
    calls = [given.call] if given.call else [*LIMITS]
    limit = given.limit or sum(LIMITS[call] for call in calls)
    summary = given.out / "summary.json"
    found = json.loads(summary.read_text()) if summary.exists() else {"machine": machine(given.device), "pieces": {}}
    todo = [name for name, piece in PIECES.items() if piece.call in calls]
    for name in todo:
        left = limit - (time.monotonic() - began)
        if found["pieces"].get(name, {}).get("ended") == "whole" or left < 2:
            continue
        found["pieces"][name] = attempt(name, min(PIECES[name].seconds or left, left), given)
        summary.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{name}: {found['pieces'][name]['ended']}, {found['pieces'][name]['seconds']} s", flush=True)
    return 0 if all(found["pieces"].get(name, {}).get("ended") == "whole" for name in todo) else 1


if __name__ == "__main__":
    sys.exit(main())
