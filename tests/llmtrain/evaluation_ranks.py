"""The work of every rank in the test of evaluation on several ranks."""

import json
from pathlib import Path

import torch
from evaluated import SAMPLING, TOKENIZER, Contains, evaluator, ids, questions, small_model, subject

from llmtrain.evaluation.benchmark import Benchmark
from llmtrain.evaluation.evaluation import Evaluation
from llmtrain.process.ranks import join, leave
from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.rollout.rollout_engine import Sampler
from llmtrain.settings.config import RolloutConfig


def main(out: Path) -> None:
    """Write OUT/eval, and each rank OUT/rank-<rank>.json."""
    ranks = join("cpu")
    torch.set_num_threads(1)
    asked = [*questions(5, "a"), *questions(2, "b")]
    engine = HFEngine(small_model(), TOKENIZER, RolloutConfig(max_new_tokens=6), rank=ranks.rank)
    evaluate = evaluator(asked, samples=4, batch_size=2, ranks=ranks)
    metrics = evaluate(Sampler(engine, TOKENIZER, 3, ranks.size))
    benchmarks = [Benchmark(s, some, ids(some), SAMPLING) for s, some in (("a", asked[:5]), ("b", asked[5:]))]
    whole = Evaluation(
        subject=subject(),
        path=out,
        benchmarks=benchmarks,
        verifier="contains",
        start_verifier=Contains,
        out=out / "eval",
        sequences=6,
    )
    records = whole.run(ranks)
    (out / f"rank-{ranks.rank}.json").write_text(json.dumps({"metrics": metrics, "records": len(records)}))
    leave(0)
