"""`llmtrain bench kernels`: the fused head beside what one would write instead, in one run on this machine.

Every case runs in a process of its own, so that its peak memory is its own. Times are medians; the loss is GRPO's with
an entropy bonus unless "no entropy" is said, on logits as peaked as a reasoning model's.
"""

import argparse
import json
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp
from torch import Tensor

CPU_SHAPES = ((4096, 512, 32_768), (4096, 512, 151_936))
CUDA_SHAPES = ((16_384, 1536, 151_936), (16_384, 3584, 151_936), (16_384, 4096, 151_936))


@dataclass(frozen=True)
class Case:
    """One thing to time: forward and backward over N tokens."""

    name: str
    tokens: int
    hidden: int
    vocabulary: int
    entropy: bool = True
    live: float = 1.0
    """Share of tokens whose advantage is not zero."""
    device: str = "cpu"
    repeats: int = 3


@dataclass(frozen=True)
class Result:
    """Milliseconds (median), and bytes held at the peak beyond inputs and gradients' own storage."""

    forward: float
    total: float
    peak: int


def inputs(case: Case) -> tuple[Tensor, Tensor, Tensor, Any]:
    """hidden (N, D), weight (V, D), targets (N,) and a plan; logits with an entropy between 0.1 and 1 nat."""
    from entrostat import Tokens, make

    g = torch.Generator().manual_seed(0)
    dtype = torch.bfloat16 if case.device == "cuda" else torch.float32
    weight = torch.randn(case.vocabulary, case.hidden, generator=g) / case.hidden**0.5
    targets = torch.randint(case.vocabulary, (case.tokens,), generator=g)
    noise = torch.randn(case.tokens, case.hidden, generator=g)
    hidden = 1.5 * log(case.vocabulary) * weight[targets] + 0.5 * noise / case.hidden**0.5
    old = torch.full((case.tokens,), -0.3)
    advantage = torch.randn(case.tokens, generator=g) * (torch.rand(case.tokens, generator=g) < case.live)
    spec = "clip_free+entropy_bonus" if case.entropy else "clip_free"
    old, advantage = old.to(case.device), advantage.to(case.device)
    tokens = Tokens(logp=old, old_logp=old, advantage=advantage, entropy=old)
    settings: dict[str, Any] = {"coef": 0.01} if case.entropy else {}
    plan = make(spec, **settings).plan(tokens)
    moved = (hidden.to(case.device, dtype), weight.to(case.device, dtype))
    return moved[0].requires_grad_(), moved[1].requires_grad_(), targets.to(case.device), plan


def dense(hidden: Tensor, weight: Tensor, targets: Tensor, plan: Any) -> Tensor:
    """All logits at once, in plain torch."""
    logp_all = torch.log_softmax((hidden @ weight.T).float(), -1)
    logp = logp_all.gather(1, targets[:, None])[:, 0]
    entropy = None if plan.entropy_coef is None else -(logp_all.exp() * logp_all).sum(-1)
    return plan.loss(logp, entropy)


def head(mode: str) -> Callable[..., Tensor]:
    from .kernels import head_loss

    return lambda hidden, weight, targets, plan: head_loss(hidden, weight, targets, plan, mode=mode)[0]


def matmuls(hidden: Tensor, weight: Tensor, targets: Tensor, plan: Any) -> Tensor:
    """The floor: logits and the two products of their gradient, with nothing in between, in the head's chunks."""
    return _Matmuls.apply(hidden, weight)


class _Matmuls(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor) -> Tensor:
        from .kernels.projection import chunk_tokens

        d_hidden, d_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        for rows in torch.arange(len(hidden)).split(chunk_tokens(weight.shape[0], weight.device)):
            logits = hidden[rows] @ weight.T
            d_hidden[rows] = logits @ weight
            d_weight.addmm_(logits.T, hidden[rows])
        ctx.gradients = d_hidden, d_weight
        return hidden.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.gradients


CANDIDATES: dict[str, Callable[[], Callable[..., Tensor]]] = {
    "dense torch": lambda: dense,
    "dense, torch.compile": lambda: torch.compile(dense),
    "fused": lambda: head("fused"),
    "recompute": lambda: head("recompute"),
    "stash": lambda: head("stash"),
    "matmuls alone": lambda: matmuls,
}


def run_case(case: Case) -> Result:
    """Time one case in this process."""
    hidden, weight, targets, plan = inputs(case)
    work = CANDIDATES[case.name]()
    cuda = case.device == "cuda"

    def once() -> tuple[float, float]:
        hidden.grad = weight.grad = None
        began = _now(cuda)
        loss = work(hidden, weight, targets, plan)
        middle = _now(cuda)
        loss.backward()
        return 1e3 * (middle - began), 1e3 * (_now(cuda) - began)

    before = _peak(cuda)
    runs = [once()]
    peak = _peak(cuda) - before
    runs += [once() for _ in range(case.repeats)]
    forward, total = (statistics.median(column) for column in zip(*runs[1:], strict=True))
    return Result(forward, total, peak)


def _now(cuda: bool) -> float:
    if cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def _peak(cuda: bool) -> int:
    """Most bytes held so far."""
    if cuda:
        return torch.cuda.max_memory_allocated()
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def isolated(case: Case) -> Result | str:
    """Run a case in a process of its own; a line of text when it failed."""
    with ProcessPoolExecutor(1, mp.get_context("spawn")) as pool:
        try:
            return pool.submit(run_case, case).result()
        except (RuntimeError, MemoryError, BrokenExecutor) as error:
            return str(error).splitlines()[0]


def cases(device: str, repeats: int) -> list[Case]:
    """What is measured on a device."""
    cuda = device == "cuda"
    names = [name for name in CANDIDATES if cuda or name not in ("dense, torch.compile", "stash")]
    out = []
    for shape in CUDA_SHAPES if cuda else CPU_SHAPES:
        out += [Case(name, *shape, device=device, repeats=repeats) for name in names]
        out += [Case("fused", *shape, entropy=False, device=device, repeats=repeats)]
        out += [Case("fused", *shape, live=q, device=device, repeats=repeats) for q in (0.5, 0.2)]
    return out


def kernels(args: list[str]) -> int:
    """Time the fused head beside dense torch: forward and backward, time and peak memory."""
    parser = argparse.ArgumentParser(prog="llmtrain bench kernels", description=kernels.__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs after the first; the median is shown")
    parser.add_argument("--out", help="write the results as JSON to this file")
    given = parser.parse_args(args)
    from rich.console import Console
    from rich.progress import track

    console = Console()
    todo = cases(given.device, given.repeats)
    shown = track(todo, "cases", console=console, disable=not console.is_terminal, transient=True)
    results = [(case, isolated(case)) for case in shown]
    console.print(table(results))
    if given.out:
        Path(given.out).write_text(json.dumps(report(results), indent=2) + "\n")
    return 0


def table(results: list[tuple[Case, Result | str]]) -> Any:
    """Times and memory beside those of dense torch at the same shape."""
    from rich.table import Table

    out = Table(title=f"forward and backward on {machine()}")
    for heading in ("case", "N×D×V", "forward ms", "total ms", "× dense", "peak MiB", "× dense"):
        out.add_column(heading, justify="left" if heading == "case" else "right")
    base: dict[int, Result] = {}
    for case, result in results:
        if isinstance(result, str):
            out.add_row(case.name, _shape(case), result)
            continue
        if case.name == "dense torch":
            base[case.vocabulary] = result
        against = base.get(case.vocabulary)
        ratios = (
            ("", "")
            if against is None
            else (f"{result.total / against.total:.2f}", f"{result.peak / against.peak:.3f}")
        )
        label = (
            case.name + ("" if case.entropy else ", no entropy") + ("" if case.live == 1 else f", {case.live:.0%} live")
        )
        times = (f"{result.forward:,.0f}", f"{result.total:,.0f}", ratios[0], f"{result.peak / 2**20:,.0f}", ratios[1])
        out.add_row(label, _shape(case), *times)
    return out


def report(results: list[tuple[Case, Result | str]]) -> dict[str, Any]:
    lines = [asdict(c) | (asdict(r) if isinstance(r, Result) else {"error": r}) for c, r in results]
    return {"machine": machine(), "torch": torch.__version__, "results": lines}


def machine() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{platform.machine()} CPU, {torch.get_num_threads()} threads"


def _shape(case: Case) -> str:
    return f"{case.tokens:,}×{case.hidden:,}×{case.vocabulary:,}"


BENCHMARKS = {"kernels": kernels}


def bench(args: list[str]) -> int:
    """Measure speed and memory; `llmtrain bench kernels`."""
    if not args or args[0] not in BENCHMARKS:
        raise ValueError(f"bench takes one of {', '.join(BENCHMARKS)}; got {' '.join(args[:1]) or 'nothing'}")
    return BENCHMARKS[args[0]](args[1:])
