"""Pages from what benchmarks/first_contact.py has measured: a section of docs/scale.md, rows of docs/benchmarks.md.

    python -m benchmarks.contact_page FOLDER

FOLDER is the --out of the measurement. Its JSON goes to docs/scale/contact, from which the section is made again by
every later call; pieces that FOLDER lacks keep what an earlier one brought. The logs of a study belong into
docs/findings, whose page benchmarks/findings.py makes.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import fused_head

from llmtrain.kernels import timing

DOCS = Path(__file__).parents[1] / "docs"
HEADING = "## In the first minutes of a GPU"
BEFORE = "## Ranks"
"""Heading of docs/scale.md before which the section stands."""
KEPT = ("summary", "decode", "tests", "ledger", "head", "trl")
GRAPHS = 1.5
"""Upper limit for the time of decoding relative to its kernels alone."""
FASTER = 3.0
"""Lower limit for TRL's seconds relative to llmtrain's."""


def section(found: Mapping[str, Any]) -> str:
    """Return the section of docs/scale.md."""
    parts = [
        HEADING,
        f"{found['summary']['machine']}, by `python -m benchmarks.first_contact` ([files](scale/contact/)).",
    ]
    makers = {"decode": decoding, "tests": tests, "ledger": ledger, "trl": trl}
    parts += ["\n".join(make(found[name])) for name, make in makers.items() if name in found]
    cut = {name: piece["ended"] for name, piece in found["summary"]["pieces"].items() if piece["ended"] != "whole"}
    parts += [f"Not whole: {'; '.join(f'{name}, {how}' for name, how in cut.items())}."] if cut else []
    return "\n\n".join(parts) + "\n"


def decoding(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| model | rows | way | ms a token | its kernels | × kernels, target ≤ 1.5 | responses alike |"
    yield "|---|--:|---|--:|--:|--:|--:|"
    for row in rows:
        where = f"| {row['model']} | {row['rows']:,} | {row['way']} |"
        if "error" in row:
            yield f"{where} {row['error']} | | | |"
            continue
        kernels, share = row["kernels_ms_a_token"], ""
        if kernels:
            ratio = row["ms_a_token"] / kernels
            share = f"{ratio:.2f}" + (f", {'met' if ratio <= GRAPHS else 'missed'}" if row["way"] == "captured" else "")
        alone = f"{kernels:.2f}" if kernels else ""
        yield f"{where} {row['ms_a_token']:.2f} | {alone} | {share} | {row['responses_alike']:.0%} |"


def tests(found: dict[str, Any]) -> Iterator[str]:
    counts = ", ".join(f"{count} {name}" for name, count in found["counts"].items())
    yield f"- **Tests** that need a GPU: {counts}."
    yield from (f"  - {line}" for line in found["failed"])


def ledger(found: dict[str, Any]) -> Iterator[str]:
    """Yield a line; where the device tells no memory, the prediction stands alone."""
    seen = [step["memory/reserved_gib"] for step in found["measured"] if step["memory/reserved_gib"] is not None]
    measured = f"{max(seen):.1f} reserved" if seen else "not measured"
    model, other, predicted = (found[name] for name in ("model", "engine_gib", "predicted_training_gib"))
    yield (
        f"- **Memory** of three steps of a {model} model beside a process that takes {other:.1f} GiB while it is "
        f"awake: {predicted:.1f} GiB predicted for training, {measured}."
    )


def trl(found: dict[str, Any]) -> Iterator[str]:
    took = found["seconds_a_step"]
    for precision in dict.fromkeys(name.split()[1] for name in took):
        if {f"trl {precision}", f"llmtrain {precision}"} <= took.keys():
            theirs, ours = took[f"trl {precision}"], took[f"llmtrain {precision}"]
            times = theirs / ours
            yield (
                f"- **A rollout step** of {found['model']} in {precision}: {ours:.2f} s, TRL {theirs:.2f} s, "
                f"{times:.2f} times as long, target ≥ {FASTER:g}: {'met' if times >= FASTER else 'missed'} (medians of "
                f"{found['rounds']} rounds)."
            )


def with_section(page: str, text: str) -> str:
    """Return docs/scale.md with this section in place of an earlier one."""
    head, _, rest = page.partition(f"\n{BEFORE}\n")
    head = head.partition(f"\n{HEADING}\n")[0]
    return f"{head}\n{text}\n{BEFORE}\n{rest}"


def merged(runs: list[dict[str, Any]], run: dict[str, Any]) -> dict[str, Any]:
    """Return a run of the head's benchmark with the cases of an earlier one on the same kind of machine."""
    earlier = next((old for old in runs if old["machine"] == run["machine"]), None)
    if earlier is None:
        return run
    fields = ("name", "tokens", "hidden", "vocabulary", "entropy", "live")
    results = {tuple(line[name] for name in fields): line for line in earlier["results"]}
    for line in run["results"]:
        case = tuple(line[name] for name in fields)
        results[case] = results.get(case, line) if "failed" in line else line
    new = [timing.label(case) for case, result in timing.read(run) if not isinstance(result, str)]
    note = f"{earlier.get('note', '')}\nMeasured later, by first_contact: {', '.join(dict.fromkeys(new))}.".strip()
    ordered = sorted(results.values(), key=lambda line: (line["hidden"], line["vocabulary"]))
    return earlier | {"results": ordered, "note": note}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--docs", type=Path, default=DOCS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    kept = given.docs / "scale/contact"
    kept.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        if (given.folder / f"{name}.json").exists():
            (kept / f"{name}.json").write_text((given.folder / f"{name}.json").read_text())
    found = {name: json.loads((kept / f"{name}.json").read_text()) for name in KEPT if (kept / f"{name}.json").exists()}
    page = given.docs / "scale.md"
    page.write_text(with_section(page.read_text(), section(found)))
    print(page)
    if "head" in found and (given.folder / "head.json").exists():
        runs = json.loads((given.docs / "data/benchmarks.json").read_text())["kernels"]
        fused_head.DOCS = given.docs
        fused_head.store({"kernels": [merged(runs, found["head"])]})
        print(given.docs / "benchmarks.md")


if __name__ == "__main__":
    main()
