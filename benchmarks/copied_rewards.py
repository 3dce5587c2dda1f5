"""Share of a run's rewards that were copies of the question: docs/data/copied.json, for docs/findings.md.

    python benchmarks/copied_rewards.py smollm2 RESPONSES.jsonl --what "GRPO, seed 0, trained again"

A line of RESPONSES has `prompt`, `truth`, `response` and `correct`, the verdict that the run was trained on. Rewarded
responses are judged again, with the question. Null result, written before the run: no rewarded response is refused now.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from llmtrain.verifiers import get_verifier

STORED = Path(__file__).parent.parent / "docs" / "data" / "copied.json"
AT_A_TIME = 4096
EXAMPLES = 3


def rewarded(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file of responses that were rewarded."""
    with path.open() as file:
        yield from (line for line in map(json.loads, file) if line["correct"])


def measure(verifier: str, path: Path, what: str) -> dict[str, Any]:
    """Return how many responses were rewarded, how many of them are refused now, and how many stand in the prompt."""
    with path.open() as file:
        responses = sum(1 for _ in file)
    found: dict[str, Any] = {"what": what, "responses": responses, "rewarded": 0, "refused": 0, "in_prompt": 0}
    examples: dict[str, str] = {}
    lines = rewarded(path)
    with get_verifier(verifier, workers=1) as verify:
        while batch := list(islice(lines, AT_A_TIME)):
            texts, truths, prompts = ([line[name] for line in batch] for name in ("response", "truth", "prompt"))
            for line, verdict in zip(batch, verify(texts, truths, prompts=prompts), strict=True):
                found["rewarded"] += 1
                found["refused"] += not verdict.correct
                found["in_prompt"] += verdict.copied
                if not verdict.correct and len(examples) < EXAMPLES:
                    examples[verdict.extracted or line["response"]] = str(line["truth"])
    return found | {"examples": examples}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", help="name of a study in benchmarks/studies.py")
    parser.add_argument("responses", type=Path, help="jsonl: prompt, truth, response, correct")
    parser.add_argument("--verifier", default="math", help="verifier of the study")
    parser.add_argument("--what", required=True, help="the run that the responses are of")
    given = parser.parse_args()
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    stored[given.study] = measure(given.verifier, given.responses, given.what)
    STORED.write_text(json.dumps(stored, indent=2) + "\n")
    print(json.dumps(stored[given.study], indent=2))


if __name__ == "__main__":
    main()
