"""`llmtrain bench kernels`: the fused head compared with its alternatives on this machine.

Every case runs in its own process, so that its peak memory can be measured. On a CPU the cases of a shape take turns,
so that other load on the machine affects all of them; on a GPU, where they would not fit beside each other, they run
one after another. Inputs rotate. The loss is GRPO's with an entropy bonus unless the case says
"no entropy"; logits are as peaked as a reasoning model's.
"""

import statistics
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from math import log
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp
from torch import Tensor

from entrostat.settings.processor import processor_name

CPU_SHAPES = ((4096, 512, 32_768), (4096, 512, 151_936))
CUDA_SHAPES = ((16_384, 1536, 151_936), (16_384, 3584, 151_936), (16_384, 4096, 151_936))
SLICE = 32
"""Tokens for measuring errors."""
CUDA_RUNS = 5
"""Timed runs per turn on CUDA, after one untimed run."""


@dataclass(frozen=True)
class Case:
    """Method and problem size to time."""

    name: str
    tokens: int
    hidden: int
    vocabulary: int
    entropy: bool = True
    live: float = 1.0
    """Share of tokens with nonzero advantage; a bonus affects the others too."""
    device: str = "cpu"
    threads: int = 0
    """CPU threads; 0 for torch's default."""


@dataclass(frozen=True)
class Result:
    """Measurements of a case. Times are medians over the turns: elapsed time on CUDA, CPU time on a (shared) CPU."""

    forward: float | None
    """Time of log p and H without gradient (ms); None if the peer has no such function, or another case times it."""
    total: float
    """Time of loss and backward pass (ms)."""
    peak: int
    """Peak bytes beyond the inputs, gradients included, in loss and backward pass."""
    logp_error: float | None
    """Largest error of log p on a slice, against float64 (nats)."""
    gradient_error: float | None
    """Largest error of ∂loss/∂hidden on a slice, against float64, over its largest entry; None for other losses."""


def inputs(case: Case, seed: int = 0, weight: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Any]:
    """Return hidden (N, D), weight (V, D), targets (N,) and a plan; entropies are between 0.1 and 1 nat."""
    from entrostat import Tokens, make

    g = torch.Generator().manual_seed(seed)
    dtype = torch.bfloat16 if case.device == "cuda" else torch.float32
    if weight is None:
        weight = (torch.randn(case.vocabulary, case.hidden, generator=g) / case.hidden**0.5).to(case.device, dtype)
    targets = torch.randint(case.vocabulary, (case.tokens,), generator=g).to(case.device)
    noise = torch.randn(case.tokens, case.hidden, generator=g).to(case.device)
    hidden = 1.5 * log(case.vocabulary) * weight.detach()[targets] + 0.5 * noise / case.hidden**0.5
    old = torch.full((case.tokens,), -0.3)
    advantage = torch.randn(case.tokens, generator=g) * (torch.rand(case.tokens, generator=g) < case.live)
    spec = "clip_free+entropy_bonus" if case.entropy else "clip_free"
    old, advantage = old.to(case.device), advantage.to(case.device)
    settings: dict[str, Any] = {"coef": 0.01} if case.entropy else {}
    plan = make(spec, **settings).plan(Tokens(logp=old, old_logp=old, advantage=advantage, entropy=-old))
    return hidden.to(dtype).requires_grad_(), weight.requires_grad_(), targets, plan


class Bench:
    """Measurement of a case in this process."""

    def __init__(self, case: Case) -> None:
        from .peers import PEERS

        if case.threads:
            torch.set_num_threads(case.threads)
        self.case, self.cuda = case, case.device == "cuda"
        self.peer = PEERS[case.name]()
        first = inputs(case)
        self.rotation = [first, inputs(case, 1, first[1])]

    @property
    def has_forward(self) -> bool:
        """True if this case times the forward pass, which is the same for every plan."""
        from .peers import WITHOUT_ENTROPY

        plain = self.case.entropy or self.case.name in WITHOUT_ENTROPY
        return self.peer.statistics is not None and plain and self.case.live == 1

    def total(self, turn: int) -> float:
        """Return the time of loss and backward pass (ms)."""
        hidden, weight, targets, plan = self.rotation[turn % len(self.rotation)]
        hidden.grad = weight.grad = None
        began = self._now()
        self.peer.loss(hidden, weight, targets, plan).backward()
        spent = self._now() - began
        hidden.grad = weight.grad = None
        return 1e3 * spent

    def forward(self, turn: int) -> float:
        """Return the time of the statistics without gradient (ms)."""
        assert self.peer.statistics is not None
        hidden, weight, targets, _ = self.rotation[turn % len(self.rotation)]
        began = self._now()
        with torch.no_grad():
            self.peer.statistics(hidden, weight, targets)
        return 1e3 * (self._now() - began)

    def turn(self, turn: int) -> dict[str, Any]:
        """Return the milliseconds of each run, and the peak in bytes."""
        calls = {"total": self.total} | ({"forward": self.forward} if self.has_forward else {})
        out: dict[str, Any] = {}
        for name, call in calls.items():
            before = self._reset_peak()
            if self.cuda:
                call(turn)
            out[name] = [call(turn + i) for i in range(CUDA_RUNS if self.cuda else 1)]
            out.setdefault("peak", self._peak() - before)
        if self.cuda:
            torch.cuda.empty_cache()
        return out

    def errors(self) -> tuple[float | None, float | None]:
        """Return the errors of log p and of ∂loss/∂hidden on a slice; see `Result`."""
        from .peers import dense_loss, dense_statistics

        hidden, weight, targets, plan = inputs(replace(self.case, tokens=SLICE), 2, self.rotation[0][1])
        exact = hidden.detach().double().requires_grad_()
        wide = weight.detach().double()
        logp_error = gradient_error = None
        if self.peer.exact and self.peer.statistics is not None:
            with torch.no_grad():
                found = self.peer.statistics(hidden, weight, targets)[0]
                logp_error = (found - dense_statistics(exact, wide, targets)[0]).abs().max().item()
        if self.peer.exact:
            a = torch.autograd.grad(self.peer.loss(hidden, weight, targets, plan), hidden)[0]
            b = torch.autograd.grad(dense_loss(exact, wide, targets, plan), exact)[0]
            gradient_error = ((a - b).abs().max() / b.abs().max()).item()
        return logp_error, gradient_error

    def _now(self) -> float:
        if self.cuda:
            torch.cuda.synchronize()
        return time.perf_counter() if self.cuda else time.process_time()

    def _reset_peak(self) -> int:
        """Reset the peak, and return the bytes in use."""
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
            return torch.cuda.memory_allocated()
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")

    def _peak(self) -> int:
        return torch.cuda.max_memory_allocated() if self.cuda else _status("VmHWM")


def _status(field: str) -> int:
    """Return a field of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


_bench: Bench


def _start(case: Case) -> None:
    global _bench
    _bench = Bench(case)


def _turn(turn: int) -> dict[str, Any]:
    return _bench.turn(turn)


def _errors() -> tuple[float | None, float | None]:
    return _bench.errors()


class Worker:
    """Process for one case, with its measurements; `failed` is the reason for missing ones."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.failed = ""
        self.turns: list[dict[str, Any]] = []
        self.found: tuple[float | None, float | None] = None, None
        self.pool = ProcessPoolExecutor(1, mp.get_context("spawn"))

    def call(self, function: Any, *args: Any) -> Any:
        """Return the function's result from the process, or None after an error there."""
        if self.failed:
            return None
        try:
            return self.pool.submit(function, *args).result()
        except ImportError:
            self.failed = "not installed"
        except torch.OutOfMemoryError:
            self.failed = "out of memory"
        except (RuntimeError, MemoryError, ValueError, AssertionError, BrokenExecutor) as error:
            self.failed = (str(error) or type(error).__name__).splitlines()[0]
        return None

    def begin(self) -> None:
        """Start the case and measure its errors."""
        self.call(_start, self.case)
        self.found = self.call(_errors) or self.found  # also a warm-up, before anything is timed

    def turn(self, turn: int) -> None:
        """Run a turn, and keep its measurements."""
        self.turns += [x for x in [self.call(_turn, turn)] if x is not None]

    def result(self) -> Result | str:
        """Return the measurements, or the reason for their absence."""
        self.pool.shutdown()
        if self.failed:
            return self.failed
        runs = {key: [ms for turn in self.turns for ms in turn.get(key, ())] for key in ("forward", "total")}
        forward, total = (statistics.median(x) if x else None for x in runs.values())
        assert total is not None
        return Result(forward, total, max(turn["peak"] for turn in self.turns), *self.found)


def measure(todo: list[Case], turns: int, progress: Any = iter) -> Iterator[tuple[Case, Result | str]]:
    """Yield the results of all cases; on a CPU those of the same shape take turns."""
    for _, some in groupby(todo, key=lambda case: case if case.device == "cuda" else shape_of(case)):
        workers = [Worker(case) for case in some]
        for worker in workers:
            worker.begin()
        for turn, worker in progress([(turn, worker) for turn in range(turns) for worker in workers]):
            worker.turn(turn)
        yield from [(worker.case, worker.result()) for worker in workers]


def cases(device: str, threads: int = 0) -> list[Case]:
    """Return the cases for a device."""
    from .peers import CPU_PEERS, PEERS, WITHOUT_ENTROPY

    out = []
    for shape in CUDA_SHAPES if device == "cuda" else CPU_SHAPES:
        common: dict[str, Any] = {"device": device, "threads": threads}
        names = PEERS if device == "cuda" else CPU_PEERS
        out += [Case(name, *shape, entropy=name not in WITHOUT_ENTROPY, **common) for name in names]
        out += [Case(name, *shape, entropy=False, **common) for name in ("dense torch", "fused")]
        out += [Case("fused", *shape, entropy=False, live=q, **common) for q in (0.5, 0.2)]
    return out


HEADINGS = ("case", "forward ms", "total ms", "× dense", "peak MiB", "× dense", "error of log p", "of gradient")


def rows(results: list[tuple[Case, Result | str]]) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield for each shape its name and table rows under HEADINGS, with time and memory relative to dense torch."""
    for shape, some in groupby(results, key=lambda pair: shape_of(pair[0])):
        lines, base = [], None
        for case, result in some:
            if isinstance(result, str):
                lines.append([label(case), result] + [""] * (len(HEADINGS) - 2))
                continue
            base = result if label(case) == "dense torch" else base
            ratios = ["", ""]
            if base is not None:
                ratios = [f"{result.total / base.total:.2f}", f"{result.peak / base.peak:.3f}"]
            forward = "" if result.forward is None else f"{result.forward:,.0f}"
            errors = ["" if x is None else f"{x:.0e}" for x in (result.logp_error, result.gradient_error)]
            total, peak = f"{result.total:,.0f}", f"{result.peak / 2**20:,.0f}"
            lines.append([label(case), forward, total, ratios[0], peak, ratios[1], *errors])
        yield shape, lines


def label(case: Case) -> str:
    """Return the name of a case in the table."""
    return case.name + ("" if case.entropy else ", no entropy") + ("" if case.live == 1 else f", {case.live:.0%} live")


def table(results: list[tuple[Case, Result | str]], where: str) -> Any:
    """Return the rows as a table for the terminal."""
    from rich.table import Table

    out = Table(title=f"loss and backward on {where}")
    for heading in HEADINGS:
        out.add_column(heading, justify="left" if heading == "case" else "right")
    for shape, lines in rows(results):
        out.add_section()
        out.add_row(f"N×D×V = {shape}")
        for line in lines:
            out.add_row(*line)
    return out


def report(results: list[tuple[Case, Result | str]], where: str, turns: int) -> dict[str, Any]:
    """Return the results as JSON values."""
    lines = [asdict(c) | (asdict(r) if isinstance(r, Result) else {"failed": r}) for c, r in results]
    return {"machine": where, "torch": torch.__version__, "turns": turns, "results": lines}


def read(found: dict[str, Any]) -> list[tuple[Case, Result | str]]:
    """Return the results in a `report`."""

    def pick(kind: Any, line: dict[str, Any]) -> Any:
        return kind(**{name: line[name] for name in kind.__dataclass_fields__})

    return [(pick(Case, x), x["failed"] if "failed" in x else pick(Result, x)) for x in found["results"]]


def machine(device: str, threads: int = 0) -> str:
    """Return the name of the GPU, or of the CPU with its thread count."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    count = threads or torch.get_num_threads()
    return f"{processor_name()}, {count} thread{'s' if count > 1 else ''}"


def shape_of(case: Case) -> str:
    """Return the shape of a case, N×D×V."""
    return f"{case.tokens:,}×{case.hidden:,}×{case.vocabulary:,}"
