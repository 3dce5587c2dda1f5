"""llmtrain data: what is in a file of questions. llmtrain subset: some of them, in a file of their own.

llmtrain data math500.parquet gsm8k_train.jsonl --first
llmtrain subset --data DAPO-Math-17k.parquet --model models/qwen --method kmeans --size 5031 --out subset.parquet
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from entrostat.commandline import Arguments

from .question import Question
from .read import Read, read

CLUSTERS = 100
SKIPPED_SHOWN = 5


def show(args: list[str]) -> int:
    """A table of files of questions; exit code 0."""
    parser = _parser("data")
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="parquet, jsonl, json, a folder, or a name on the HF hub"
    )
    parser.add_argument("--first", action="store_true", help="print the first question of each file in full")
    _reading(parser)
    given = parser.parse_args(args)
    found = {name: _read(name, given) for name in given.files}
    console = Console()
    console.print(overview(found))
    for name, (questions, skipped) in found.items():
        for line in skipped[:SKIPPED_SHOWN]:
            console.print(f"skipped: {line}", markup=False, highlight=False, soft_wrap=True)
        if len(skipped) > SKIPPED_SHOWN:
            console.print(
                f"skipped: {len(skipped) - SKIPPED_SHOWN:,} more of {name}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        if given.first:
            _print_whole(console, questions[0])
    return 0


def overview(found: dict[str, Read]) -> Table:
    """A line a file. Prompt lengths are in characters, without roles."""
    caption = "characters of a prompt: median, and of the longest"
    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0), caption=caption, caption_justify="left")
    table.add_column("file", overflow="fold")
    for heading in ("rows", "questions", "repeats", "skipped", "characters"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("form")
    table.add_column("source", overflow="fold")
    for name, (questions, skipped) in found.items():
        repeats, sizes = [q.repeats for q in questions], [len(q.text) for q in questions]
        chat = sum(not isinstance(q.prompt, str) for q in questions)
        sources = sorted({q.source for q in questions})
        table.add_row(
            escape(Path(name).name or name),
            f"{sum(repeats) + len(skipped):,}",
            f"{len(questions):,}",
            str(min(repeats)) if len(set(repeats)) == 1 else f"{min(repeats)} to {max(repeats)}",
            f"{len(skipped):,}",
            f"{median(sizes):,.0f}, {max(sizes):,}",
            "chat"
            if chat == len(questions)
            else "text"
            if not chat
            else f"chat {chat:,}, text {len(questions) - chat:,}",
            escape(", ".join(sources[:3]) + (f" and {len(sources) - 3} more" if len(sources) > 3 else "")),
        )
    return table


def _print_whole(console: Console, question: Question) -> None:
    console.rule(escape(question.where), align="left")
    if isinstance(question.prompt, str):
        console.print(question.prompt, markup=False, highlight=False)
    else:
        for message in question.prompt:
            console.print(f"[{message['role']}]\n{message['content']}", markup=False, highlight=False)
    console.print(f"\nground truth: {question.ground_truth}", markup=False, highlight=False)
    if question.solution is not None:
        console.print(f"solution: {question.solution}", markup=False, highlight=False)


def subset(args: list[str]) -> int:
    """Some questions of a file, at random or the largest K-means clusters of their prompts; exit code 0."""
    parser = _parser("subset")
    parser.add_argument("--data", required=True, help="parquet, jsonl, json, a folder, or a name on the HF hub")
    parser.add_argument("--method", choices=("random", "kmeans"), required=True)
    parser.add_argument("--size", type=int, required=True, help="questions to take; of the last cluster only a part")
    parser.add_argument("--out", required=True, help="parquet file to write, in verl's form")
    parser.add_argument(
        "--model",
        help="kmeans: folder of the model whose last layer embeds the prompts, through its chat template if any",
    )
    parser.add_argument(
        "--clusters", type=int, default=CLUSTERS, help="kmeans: number of clusters (default %(default)s)"
    )
    parser.add_argument("--batch-tokens", type=int, default=8192, help="kmeans: tokens through the model at a time")
    parser.add_argument("--seed", type=int, default=0)
    _reading(parser)
    given = parser.parse_args(args)
    if given.method == "kmeans" and not given.model:
        raise ValueError("--method kmeans needs --model, the folder of a model that embeds the prompts")
    source, out = Path(given.data).resolve(), Path(given.out).resolve()
    if out.exists() and source in (out, *out.parents):
        raise ValueError(f"--out {given.out} is the input itself, or a file of it: choose another")
    from .subset import random_subset
    from .write import write

    questions, skipped = _read(given.data, given)
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
    """Indices of the largest clusters, whose sizes are printed."""
    import torch

    from ..model import load
    from ..prompts import encode_all
    from .subset import cut, embed, kmeans_clusters

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


def _parser(command: str) -> Arguments:
    return Arguments(prog=f"llmtrain {command}", description=__doc__)


def _reading(parser: Arguments) -> None:
    """Arguments of `read`."""
    parser.add_argument("--prompt-key", default="", help="column of the prompt (dotted for a field within one)")
    parser.add_argument(
        "--answer-key", default="", help="column of the ground truth, such as reward_model.ground_truth"
    )
    parser.add_argument("--split", default="train", help="of a folder or a data set of the hub (default %(default)s)")
    parser.add_argument("--skip-bad", action="store_true", help="leave out rows that cannot be used, and count them")


def _read(name: str, given: argparse.Namespace) -> Read:
    keys = {"prompt_key": given.prompt_key, "answer_key": given.answer_key}
    return read(name, split=given.split, skip_bad=given.skip_bad, **keys)
