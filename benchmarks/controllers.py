"""Cost of a plan: time and memory of every controller, public implementations for comparison, and top-k over ranks.

    python benchmarks/controllers.py [--tokens 1000000] [--rank-tokens 10000000] [--json FILE]

One thread, float32, CPU time of the fastest of several calls. Targets: 60 ms for a million tokens without random draws,
and 20 vectors of N float32 numbers beyond the tokens themselves. Controllers that draw tokens hash the identity of
every candidate, so that the result does not depend on the number of ranks; they are marked and have no time target.
Memory counts tensors; buffers inside a kernel (up to 3 vectors to select the k-th largest) are not visible.

The public forms select tokens as in a trainer with padded (B, L) tensors, for one micro-batch and one process: verl's
clip_cov and kl_cov losses and TRL's mask of high-entropy tokens, reimplemented.

Ranks are threads with a barrier: the results are CPU time, communication rounds and bytes sent per rank, which do not
depend on the number of cores.
"""

import argparse
import json
import threading
import time
import tracemalloc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from entrostat import CompositionWarning, DistReduce, StepStats, Tokens, list_controllers, make
from entrostat.by_name import ALIASES

BAR_MS, BAR_VECTORS = 60.0, 20.0
DRAWING = ("clip_cov", "random_positive_clip")
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("ppo", {"aggregation": "seq-mean-token-mean"}),
    ("steer", {"mapping": "linear"}),
    ("steer", {"mapping": "binary"}),
    ("steer", {"estimator": "exact"}),
    ("opefo", {"estimator": "exact"}),
    ("thermostat", {"mode": "reweight"}),
    ("thermostat", {"mode": "both"}),
    ("clip_higher+steer+entropic", {}),
]
ANCHOR = {"siren/entropy": 2.0, "siren/updates": 1.0}
STATS = StepStats(entropy=0.9, step=6, total_steps=8, epoch=2, epochs=3, planned=ANCHOR)


def tokens_of(n: int, length: int = 1000, group: int = 8) -> Tokens:
    """Return n tokens of responses of `length`, `group` responses per prompt, with realistic values."""
    g = torch.Generator().manual_seed(0)
    entropy = 2 * torch.rand(n, generator=g) ** 2
    logp = entropy * torch.randn(n, generator=g).clamp(max=0) - 0.1 * entropy
    old = logp + 0.05 * torch.randn(n, generator=g)
    sequence = torch.arange(n) // length
    s2 = (-entropy).exp()
    reward = (torch.rand(int(sequence[-1]) + 1, generator=g) > 0.5).float()
    return Tokens(
        logp=logp,
        old_logp=old,
        rollout_logp=old,
        ref_logp=old - 0.05,
        advantage=(2 * reward - 1)[sequence] * (0.5 + torch.rand(len(reward), generator=g))[sequence],
        reward=reward[sequence],
        entropy=entropy,
        old_entropy=entropy * 1.01,
        truncated_entropy=entropy / 2,
        proxy_logp=old + 0.02,
        s2=s2,
        s2l=-0.5 * s2 * entropy,
        s2ll=0.4 * s2 * entropy**2,
        seq_id=sequence,
        group_id=sequence // group,
        position=torch.arange(n) % length,
        turn_id=torch.arange(n) % length // 64,
    )


def best(work: Callable[[], object], calls: int = 7) -> float:
    """Return the CPU milliseconds of the fastest of several calls, with one thread."""
    work()
    seconds = []
    for _ in range(calls):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return 1e3 * min(seconds)


class PeakMemory(TorchDispatchMode):
    """Peak bytes of live tensors created inside the context, plus NumPy's own peak."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, int] = {}
        self.now = self.peak = 0

    def __enter__(self) -> "PeakMemory":
        tracemalloc.start()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.peak += tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {a.untyped_storage()._cdata for a in args if isinstance(a, Tensor)}
        tree_map_only(Tensor, lambda t: self._seen(t, given), out)
        return out

    def _seen(self, tensor: Tensor, given: set[int]) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.live or key in given:
            return
        self.live[key] = storage.nbytes()
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._gone, key)

    def _gone(self, key: int) -> None:
        self.now -= self.live.pop(key, 0)


def measure(spec: str, settings: dict[str, Any], tokens: Tokens) -> dict[str, Any]:
    """Return time and memory of a controller's plan, and whether they meet the targets."""
    controller = make(spec, **settings)
    controller.observe(STATS)
    controller.plan(tokens)
    milliseconds = best(lambda: controller.plan(tokens))
    with PeakMemory() as memory:
        controller.plan(tokens)
    draws = any(name in DRAWING for name in spec.split("+"))
    vectors = memory.peak / (4 * tokens.size)
    return {
        "controller": spec + "".join(f" {k}={v}" for k, v in settings.items()),
        "ms": round(milliseconds, 1),
        "vectors": round(vectors, 1),
        "draws": draws,
        "within": (draws or milliseconds < BAR_MS) and vectors < BAR_VECTORS,
    }


# Public forms ---------------------------------------------------------------------------------------------------------


def padded(x: Tensor, lengths: Tensor) -> Tensor:
    """Return a tensor (N,) as (B, longest), with zeros after each response."""
    out = x.new_zeros(len(lengths), int(lengths.max()))
    out[torch.arange(out.shape[1]) < lengths[:, None]] = x
    return out


def public_clip_cov(logp: Tensor, old: Tensor, advantage: Tensor, mask: Tensor) -> Tensor:
    """Return the factor of each token: 0 for the drawn ones, else 1."""
    size = mask.sum()
    ratio = (logp - old).exp()
    stopped = -advantage * ratio < -advantage * ratio.clamp(0, 2)
    score = (advantage - (advantage * mask).sum() / size) * (logp - (logp * mask).sum() / size)
    score[mask == 0] = -torch.inf
    score[stopped] = -torch.inf
    inside = ((score < 5.0) & (score > 1.0) & (mask > 0)).nonzero()
    factor = torch.ones_like(advantage)
    if len(inside):
        drawn = inside[torch.randperm(len(inside))[: max(int(2e-4 * size), 1)]]
        factor[drawn[:, 0], drawn[:, 1]] = 0
    return factor


def public_kl_cov(logp: Tensor, old: Tensor, advantage: Tensor, mask: Tensor) -> Tensor:
    """Return the coefficient of each token's penalty."""
    where = (mask > 0).reshape(-1).nonzero()[:, 0]
    a, lp = advantage[mask > 0], logp[mask > 0]
    score = (a - a.mean()) * (lp - lp.mean())
    top = where[score.topk(max(int(2e-3 * len(score)), 1)).indices]
    coef = torch.zeros_like(advantage)
    coef[top // logp.shape[1], top % logp.shape[1]] = 1.0
    return coef


def public_forking(entropy: Tensor, mask: Tensor) -> Tensor:
    """Return the mask of the 20% of tokens with the highest entropy."""
    threshold = torch.quantile(entropy[mask > 0].float(), 0.8)
    return ((entropy * mask) >= threshold) & (mask > 0)


def compare(tokens: Tokens) -> list[dict[str, Any]]:
    """Compare our complete plan with the public selection alone, on the same tokens."""
    n, g = tokens.size, torch.Generator().manual_seed(1)
    lengths = torch.randint(500, 1501, (n // 2000,), generator=g)
    lengths = torch.cat([lengths, 2000 - lengths])  # 1000 on average
    logp, old, advantage = (padded(tokens.get(name), lengths) for name in ("logp", "old_logp", "advantage"))
    entropy, mask = padded(tokens.get("entropy"), lengths), padded(torch.ones(n), lengths)
    forms: dict[str, tuple[str, Callable[[], object]]] = {
        "clip_cov": ("verl", lambda: public_clip_cov(logp, old, advantage, mask)),
        "kl_cov": ("verl", lambda: public_kl_cov(logp, old, advantage, mask)),
        "forking_tokens": ("TRL", lambda: public_forking(entropy, mask)),
    }
    rows = []
    for name, (where, form) in forms.items():
        controller = make(name, preset="released") if name == "clip_cov" else make(name)
        ours, theirs = best(lambda c=controller: c.plan(tokens)), best(form)  # type: ignore[misc]
        row = {"controller": name, "ms": round(ours, 1), "form of": where, "its ms": round(theirs, 1)}
        rows.append({**row, "times faster": round(theirs / ours, 2)})
    return rows


# Ranks ----------------------------------------------------------------------------------------------------------------


class Meeting:
    """Exchange of tensors between threads that act as ranks."""

    def __init__(self, ranks: int) -> None:
        self.barrier = threading.Barrier(ranks)
        self.table: list[Tensor] = [torch.empty(0)] * ranks

    def exchange(self, rank: int, x: Tensor) -> Tensor:
        """Return x of every rank, stacked."""
        self.table[rank] = x
        self.barrier.wait()
        out = torch.stack(self.table)
        self.barrier.wait()
        return out


class ThreadRank(DistReduce):
    """Reduction over threads that counts rounds and sent bytes."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        super().__init__()
        self.meeting, self.rank = meeting, rank
        self.rounds = self.sent = 0

    @property
    def ranks(self) -> int:
        return len(self.meeting.table)

    def _gather(self, x: Tensor) -> Tensor:
        self.rounds += 1
        self.sent += x.nbytes
        return self.meeting.exchange(self.rank, x)

    def _across(self, x: Tensor, op: Any) -> Tensor:
        parts = self._gather(x)
        return parts.sum(0) if op == torch.distributed.ReduceOp.SUM else parts.amax(0)


def top_k_over_ranks(n: int, ranks: int, share: float, dtype: torch.dtype) -> dict[str, Any]:
    """Find the share·n largest of n scores distributed over `ranks` ranks, and return the cost."""
    scores = torch.randn(n, generator=torch.Generator().manual_seed(2), dtype=dtype).tensor_split(ranks)
    meeting, k = Meeting(ranks), int(share * n)
    reduces = [ThreadRank(meeting, rank) for rank in range(ranks)]
    busy, chosen = [0.0] * ranks, [0] * ranks

    def work(rank: int) -> None:
        start = time.thread_time()
        chosen[rank] = int(reduces[rank].top_k(scores[rank], k).sum())
        busy[rank] = time.thread_time() - start

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(chosen) == k
    return {
        "share": share,
        "dtype": str(dtype).removeprefix("torch."),
        "rounds": reduces[0].rounds,
        "kB sent by a rank": round(reduces[0].sent / 1e3, 1),
        "ms of a rank": round(1e3 * max(busy), 1),
        "kB if all were gathered": round(scores[0].nbytes / 1e3),
    }


def table(title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows with the same keys as columns."""
    cells = [list(rows[0]), *([str(v) for v in row.values()] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    print(f"\n{title}")
    for row in cells:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--rank-tokens", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--json", help="also write the numbers to this file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", CompositionWarning)
    tokens = tokens_of(given.tokens)
    with PeakMemory():  # excludes imports at the first call from the measurement
        make("ppo").plan(tokens)
    specs: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in list_controllers() if name not in ALIASES]
    results = {
        "plan": [measure(spec, settings, tokens) for spec, settings in specs + VARIANTS],
        "public forms": compare(tokens),
        "top-k over ranks": [
            top_k_over_ranks(given.rank_tokens, given.ranks, share, dtype)
            for dtype in (torch.float32, torch.float64)
            for share in (2e-4, 2e-3, 0.2)
        ],
    }
    table(f"plan of {given.tokens:,} tokens: ms, and peak memory in vectors of N float32", results["plan"])
    table("compared with the public form, which selects for one process and one micro-batch", results["public forms"])
    table(f"top-k of {given.rank_tokens:,} tokens on {given.ranks} ranks", results["top-k over ranks"])
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"tokens": given.tokens, "torch": torch.__version__, **results}, file, indent=2)


if __name__ == "__main__":
    main()
