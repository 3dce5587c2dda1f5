"""llmtrain subset: write a subset of a question file to another file.

llmtrain subset --data DAPO-Math-17k.parquet --model models/qwen --method kmeans --size 5031 --out subset.parquet
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from entrostat.commandline import Arguments

from ..data.question import Question
from ..data.reading_flags import add_flags, read_as_told

CLUSTERS = 100


def main(args: list[str]) -> int:
    """Write random questions of a file, or the largest K-means clusters of their prompts; return exit code 0."""
    parser = Arguments(prog="llmtrain subset", description=__doc__)
    parser.add_argument("--data", required=True, help="parquet, jsonl, json, a folder, or a name on the HF hub")
    parser.add_argument("--method", choices=("random", "kmeans"), required=True)
    parser.add_argument("--size", type=int, required=True, help="number of questions; the last cluster is cut to fit")
    parser.add_argument("--out", required=True, help="parquet file to write, in verl's form")
    parser.add_argument(
        "--model",
        help="kmeans: folder of the model whose last layer embeds the prompts, with its chat template if it has one",
    )
    parser.add_argument(
        "--clusters", type=int, default=CLUSTERS, help="kmeans: number of clusters (default %(default)s)"
    )
    parser.add_argument("--batch-tokens", type=int, default=8192, help="kmeans: tokens per forward pass")
    parser.add_argument("--seed", type=int, default=0)
    add_flags(parser)
    given = parser.parse_args(args)
    if given.method == "kmeans" and not given.model:
        raise ValueError("--method kmeans needs --model, the folder of a model that embeds the prompts")
    source, out = Path(given.data).resolve(), Path(given.out).resolve()
    if out.exists() and source in (out, *out.parents):
        raise ValueError(f"--out {given.out} is the input itself or one of its files: choose another")
    from ..data.selection import random_subset
    from ..data.write import write

    questions, skipped = read_as_told(given.data, given)
    if given.method == "random":
        chosen = random_subset(len(questions), given.size, given.seed)
    else:
        chosen = _kmeans(questions, given)
    write([questions[i] for i in chosen], given.out)
    left_out = f", {len(skipped)} bad rows skipped (the first: {skipped[0]})" if skipped else ""
    share = len(chosen) / len(questions)
    print(f"{given.out}: {len(chosen):,} of {len(questions):,} questions ({share:.1%}){left_out}")
    return 0


def _kmeans(questions: Sequence[Question], given: argparse.Namespace) -> list[int]:
    """Print the sizes of the largest clusters, and return the indices of their questions."""
    import torch

    from ..data.prompts import encode_all
    from ..data.selection import cut, embed, kmeans_clusters
    from ..policy.model import load

    model, tokenizer = load(given.model)
    model.to("cuda" if torch.cuda.is_available() else "cpu")  # type: ignore[arg-type]
    prompts = [q.prompt if tokenizer.chat_template else q.text for q in questions]
    ids = encode_all(tokenizer, prompts, [q.where for q in questions])
    embeddings = embed(model, tokenizer, ids, given.batch_tokens)
    clusters = kmeans_clusters(embeddings, given.clusters, given.seed)
    taken = cut(clusters, given.size)
    table = Table(box=SIMPLE, pad_edge=False, title="clusters taken", title_justify="left")
    for heading in ("cluster", "questions", "taken", "share of all"):
        table.add_column(heading, justify="right")
    for i, (whole, part) in enumerate(zip(clusters, taken, strict=False), 1):
        table.add_row(str(i), f"{len(whole):,}", f"{len(part):,}", f"{len(part) / len(questions):.1%}")
    Console().print(table)
    return [index for cluster in taken for index in cluster.tolist()]
