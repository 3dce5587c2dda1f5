"""llmtrain subset: write a subset of a question file to another file.

llmtrain subset --data DAPO-Math-17k.parquet --model models/qwen --method kmeans --size 5031 --out subset.parquet
llmtrain subset --data DAPO-Math-17k.parquet --model models/qwen --method pass-rate --samples 8 --low .1 --high .9 \\
    --rollout vllm --device cuda --out learnable.parquet

--without choice leaves out questions with lettered options, before any is drawn or asked; so do true-false and proof.
pass-rate keeps the questions whose share of correct responses lies within --low and --high, both included. Responses
are kept in OUT-responses, beside --out: the same command, also with other bounds, continues there and replaces OUT.
Another file is replaced with --overwrite only.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from entrostat.settings.commandline import Arguments

from ..data.kinds import KINDS, kind_of
from ..data.question import Question
from ..data.reading_flags import add_flags, read_as_told
from ..evaluation.asking_flags import add_model_flags

CLUSTERS = 100


def main(args: list[str]) -> int:
    """Write random questions, the largest K-means clusters, or those within a pass rate; return exit code 0."""
    parser = Arguments(prog="llmtrain subset", description=__doc__)
    parser.add_argument("--data", required=True, help="parquet, jsonl, json, a folder, or a name on the HF hub")
    parser.add_argument("--method", choices=("random", "kmeans", "pass-rate"), required=True)
    parser.add_argument(
        "--size", type=int, help="number of questions; the last cluster is cut to fit; pass-rate: random ones, or all"
    )
    parser.add_argument("--out", required=True, help="parquet file to write, in verl's form")
    parser.add_argument(
        "--model",
        help="folder of the model. kmeans: its last layer embeds the prompts, with its chat template if it has one",
    )
    parser.add_argument(
        "--clusters", type=int, default=CLUSTERS, help="kmeans: number of clusters (default %(default)s)"
    )
    parser.add_argument("--batch-tokens", type=int, default=8192, help="kmeans: tokens per forward pass")
    parser.add_argument("--low", type=float, default=0.1, help="pass-rate: lowest that is kept (default %(default)s)")
    parser.add_argument("--high", type=float, default=0.9, help="pass-rate: highest that is kept (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--without", nargs="+", default=[], choices=KINDS, metavar="KIND", help=f"leave out {', '.join(KINDS)}"
    )
    add_flags(parser)
    add_model_flags(parser.add_argument_group("pass-rate"), samples=8)
    given = parser.parse_args(args)
    if given.method != "random" and not given.model:
        raise ValueError(f"--method {given.method} needs --model, the folder of a model")
    if given.method != "pass-rate" and given.size is None:
        raise ValueError(f"--method {given.method} needs --size, the number of questions")
    if not 0 <= given.low <= given.high <= 1:
        raise ValueError(f"--low {given.low:g} and --high {given.high:g} must be shares, the lower one first")
    source, out = Path(given.data).resolve(), Path(given.out).resolve()
    if out.exists() and source in (out, *out.parents):
        raise ValueError(f"--out {given.out} is the input itself or one of its files: choose another")
    goes_on = given.method == "pass-rate" and _responses(out).exists()
    if out.exists() and not (given.overwrite or goes_on):
        raise ValueError(f"{given.out} exists: choose another --out, or pass --overwrite")
    from ..data.selection import random_subset
    from ..data.write import write

    read_questions, skipped = read_as_told(given.data, given)
    questions = [question for question in read_questions if kind_of(question) not in given.without]
    if not questions:
        raise ValueError(f"{given.data} has no questions without {', '.join(given.without)}: leave out fewer kinds")
    if given.method == "random":
        chosen = random_subset(len(questions), given.size, given.seed)
    else:
        chosen = (_kmeans if given.method == "kmeans" else _learnable)(questions, given)
    write([questions[i] for i in chosen], given.out)
    left_out = f", {len(skipped)} bad rows skipped (the first: {skipped[0]})" if skipped else ""
    if given.without:
        gone = len(read_questions) - len(questions)
        left_out = f", {gone:,} left out as {', '.join(given.without)}{left_out}"
    share = len(chosen) / len(read_questions)
    print(f"{given.out}: {len(chosen):,} of {len(read_questions):,} questions ({share:.1%}){left_out}")
    return 0


def _responses(out: Path) -> Path:
    """Return the folder of the responses from which the file `out` is chosen."""
    return out.with_name(f"{out.stem}-responses")


def _learnable(questions: Sequence[Question], given: argparse.Namespace) -> list[int]:
    """Print the number of questions by pass rate, and return the indices of those within the bounds."""
    from ..data.selection import random_subset
    from ..evaluation.asking import ask

    out = Path(given.out)
    lines = ask(Path(given.model), questions, given, _responses(out))
    right = {i: sum(line["correct"] for line in some) for i, some in lines}
    for count in range(given.samples + 1):
        print(f"{count} of {given.samples} correct: {sum(n == count for n in right.values()):,} questions")
    found = [i for i, n in right.items() if given.low <= n / given.samples <= given.high]
    if not found:
        raise ValueError(f"no question has a pass rate from {given.low:g} to {given.high:g}: widen the bounds")
    if given.size is None:
        return found
    return [found[i] for i in random_subset(len(found), given.size, given.seed)]


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
