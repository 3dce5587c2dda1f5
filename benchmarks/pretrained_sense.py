"""Sense of the answers that a run on the task `constraints` learned: docs/data/sense.json, for docs/findings.md.

    llmtrain eval runs/constraints/ppo/0 --samples 8 --limit 24 --dtype float32 --out RESPONSES
    python benchmarks/pretrained_sense.py RESPONSES/responses.jsonl --run runs/constraints/ppo/0

The verifier sees words alone: "Rain rain rain rain rain rain." is six words about rain. On held-out questions:

- of the rewarded answers, the share that is different from all others, the share of different words within one, the
  share that names its topic, and the log-probability per token that the published model gives them (nats);
- of all answers, the KL from the published model per token (nats): mean of logp − its logp. Answers that tokenize to
  another number of tokens than were sampled are left out of both.

Null result, written before the runs: no rule's answers differ in any of these from GRPO's beyond the intervals.
"""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from llmtrain.data import Question
from llmtrain.data.prompts import encode_all
from llmtrain.tasks.constraints import words
from llmtrain.tasks.task_registry import get_task
from llmtrain.training.run import run_config

STORED = Path(__file__).parent.parent / "docs" / "data" / "sense.json"
AT_A_TIME = 32
"""Answers per forward pass."""


def topic(question: Question) -> str:
    """Return the topic of a question, without its last letter so that singular and plural count; "" for a list."""
    found = re.search(r"about (\w+)\w\b", question.text)
    return found[1].lower() if found else ""


def per_token(model: Any, tokenizer: Any, prompts: Sequence[list[int]], answers: Sequence[list[int]]) -> np.ndarray:
    """Return the mean log-probability of each answer's tokens (nats), (answers,)."""
    found = []
    for start in range(0, len(answers), AT_A_TIME):
        asked, said = prompts[start : start + AT_A_TIME], answers[start : start + AT_A_TIME]
        rows = [[*p, *a] for p, a in zip(asked, said, strict=True)]
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        with torch.inference_mode():
            logits = model(input_ids=ids, attention_mask=mask).logits
        for row, p, a in zip(logits, asked, said, strict=True):
            logp = row[len(p) - 1 : len(p) + len(a) - 1].float().log_softmax(-1)
            found.append(float(logp.gather(1, torch.tensor(a)[:, None]).mean()))
    return np.array(found)


def measure(lines: Sequence[dict[str, Any]], questions: Sequence[Question], start: Path) -> dict[str, float]:
    """Return the measures of the answers in `lines` to their questions; start: folder of the published model."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(start)
    model = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32).eval()
    prompts = encode_all(tokenizer, [question.prompt for question in questions])
    texts = [line["response"] for line in lines]
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    ids = [some + [tokenizer.eos_token_id] * line["finished"] for some, line in zip(ids, lines, strict=True)]
    same = np.array([len(some) == line["tokens"] > 0 for some, line in zip(ids, lines, strict=True)])
    kept = np.flatnonzero(same)
    logp = np.full(len(lines), np.nan)
    logp[kept] = per_token(model, tokenizer, [prompts[i] for i in kept], [ids[i] for i in kept])
    tokens, own = (np.array([line[name] for line in lines], dtype=float) for name in ("tokens", "logp"))
    right = np.array([line["correct"] for line in lines], dtype=bool)
    said = [tuple(words(text)) for text, correct in zip(texts, right, strict=True) if correct]
    named = [
        topic(question) in text.lower()
        for question, text, correct in zip(questions, texts, right, strict=True)
        if correct and topic(question)
    ]
    counted = right & same
    return {
        "answers": len(lines),
        "rewarded": int(right.sum()),
        "different answers": len(set(said)) / max(len(said), 1),
        "different words": float(np.mean([len(set(one)) / max(len(one), 1) for one in said])),
        "names its topic": float(np.mean(named)),
        "published logp": float((logp[counted] * tokens[counted]).sum() / tokens[counted].sum()),
        "KL from the start": float(((own - logp)[same] * tokens[same]).sum() / tokens[same].sum()),
        "left out": float(1 - same.mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses", type=Path, help="responses.jsonl of `llmtrain eval`")
    parser.add_argument("--run", type=Path, required=True, help="folder of the run: <rule>/<seed>")
    given = parser.parse_args()
    config = run_config(given.run)
    by_source: dict[str, list[Question]] = {}
    for question in get_task(config).test:
        by_source.setdefault(question.source, []).append(question)
    lines = [json.loads(line) for line in given.responses.read_text().splitlines()]
    questions = [by_source[line["source"]][line["question"]] for line in lines]
    found = measure(lines, questions, Path(str(config.model.path)))
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    stored.setdefault(given.run.parent.name, {})[given.run.name] = {name: round(x, 5) for name, x in found.items()}
    STORED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
