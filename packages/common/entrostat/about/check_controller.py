"""Ways in which a controller can be wrong, tried one by one on ragged mini-batches of a small policy.

    python -m entrostat check-controller my_module:MyRule target=0.4

    for name, fault in checked("my_module:MyRule", {"target": 0.4}):
        print(name, fault or "ok")

Each check returns what it found, in one line, or "". A controller that passes all of them may be split over
micro-batches and ranks, run as thousands of bandits side by side, and stopped and resumed.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

from ..by_name import make
from ..chaining import Chain
from ..controller import Controller, StepStats
from ..numbers.reduce import DistReduce
from ..reads import found_reads, needs_of
from ..sample_batch import Ragged, ragged_batch
from ..tokens import IDS, Tokens
from .gradients import gradient, plan_of

SEEDS = range(6)
"""Mini-batches."""
ENTROPIES = (0.9, 0.2, 1.6)
"""Entropies that a closed loop observes before it plans (nats)."""
RANKS = 2
TOLERANCE = 1e-10
SCALES = (0.5, 1.0, 1.5)
"""Factors of log-probabilities and entropies in the runs side by side."""
SCALED = ("logp", "old_logp", "ref_logp", "proxy_logp", "rollout_logp", "entropy", "old_entropy", "truncated_entropy")


def checked(spec: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each check and the fault that it found, "" for none. Raises ValueError if `make` refuses.

    A rule that reads what it does not name fails in all checks: then the one that says so is the only one.
    """
    reads = "reads what it needs"
    if any(found_reads(part) - needs_of(part) for part in make(spec, **settings).parts):
        yield reads, CHECKS[reads](spec, settings)
        return
    for name, check in CHECKS.items():
        try:
            yield name, check(spec, settings)
        except Exception as error:
            yield name, reason(error)


def reason(error: Exception) -> str:
    """Return an error in one line; of a rank's its last one, after the traceback."""
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, mp.ProcessRaisedException) and said:
        return f"on a rank: {said[-1]}"
    return f"{type(error).__name__}: {said[0] if said else 'no reason given'}"


def built(spec: str, settings: Mapping[str, Any], batch: Ragged | None = None) -> Chain:
    """Return a controller that has observed ENTROPIES, and planned in between, as in a training."""
    controller, batch = make(spec, **settings), batch or ragged_batch(0)
    planned: Mapping[str, Tensor] = {}
    for step, entropy in enumerate(ENTROPIES):
        controller.observe(stats(entropy, step, planned))
        _ = controller.temperature  # read, as a trainer does
        planned = plan_of(controller, batch, everything(batch)).info
    return controller


def stats(entropy: float | Tensor, step: int, planned: Mapping[str, Tensor]) -> StepStats:
    """Return the statistics of a rollout step. planned: metrics of the plan before it."""
    return StepStats(entropy=entropy, step=step, total_steps=8, epoch=2, epochs=3, planned=planned)


def everything(batch: Ragged) -> Tensor:
    return torch.arange(batch.tokens.size)


def apart(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest expected number; infinite if one is not finite."""
    if not bool(found.isfinite().all()):
        return float("inf")
    size = float(expected.abs().max())
    difference = float((found - expected).abs().max())
    return difference / size if size else difference


def acts(spec: str, settings: Mapping[str, Any]) -> str:
    """It changes the update of the surrogate alone in some mini-batch, or sets the sampling temperature."""
    controller = built(spec, settings)
    if not controller.parts:
        return ""
    surrogate = Chain(controller.surrogate, (), implied=False)
    first = ragged_batch(0)
    for entropy in ENTROPIES:
        planned = plan_of(controller, first, everything(first)).info
        controller.observe(stats(entropy, len(ENTROPIES), planned))
        heat = controller.temperature
        if heat is not None and bool((heat != 1).any()):
            return ""
        for batch in map(ragged_batch, SEEDS):
            whole = everything(batch)
            if apart(gradient(controller, batch, whole), gradient(surrogate, batch, whole)) > TOLERANCE:
                return ""
    return f"changes nothing of {controller.surrogate.name}'s update in {len(SEEDS)} mini-batches, at any entropy"


def declares(spec: str, settings: Mapping[str, Any]) -> str:
    """A rule that names what it `needs` reads no other field of Tokens; one that does not plans with what was found."""
    for part in make(spec, **settings).parts:
        if read := found_reads(part) - needs_of(part):
            fields = ", ".join(f"Tokens.{name}" for name in sorted(read))
            return f"{part.name} reads {fields}, which its `needs` does not name: name it, or leave `needs` out"
    controller, batch = built(spec, settings), ragged_batch(0)
    known = controller.needs | {"advantage"}
    given: dict[str, Any] = {name: x if name in known else None for name, x in vars(batch.tokens).items()}
    few = replace(batch, tokens=Tokens(**{"logp": None, "old_logp": None, **given}))
    plan_of(controller, few, everything(batch))
    return ""


def keeps_its_state(spec: str, settings: Mapping[str, Any]) -> str:
    """All that `observe` changes is in the state, which a checkpoint holds."""
    controller = built(spec, settings)
    for step, entropy in enumerate(reversed(ENTROPIES), len(ENTROPIES)):
        before = [deepcopy(vars(part)) for part in controller.parts]
        controller.observe(stats(entropy, step, plan_of(controller, ragged_batch(0), everything(ragged_batch(0))).info))
        for part, old in zip(controller.parts, before, strict=True):
            if (
                type(part).state_dict is not Controller.state_dict
            ):  # under names of its own, see the check of checkpoints
                continue
            kept = {*part.state, *part.schedules}
            for name, value in vars(part).items():
                if name not in kept and not alike(value, old.get(name)):
                    return f"observe changes {part.name}.{name}, which is not in its `state`: a resumed run loses it"
    return ""


def alike(one: Any, other: Any) -> bool:
    """Return True if two values of an attribute are the same; NaN equals NaN."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and bool(torch.equal(one.nan_to_num(), other.nan_to_num()))
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return False
    return type(one) is type(other) and (one == other or repr(one) == repr(other))


def is_finite(spec: str, settings: Mapping[str, Any]) -> str:
    """Its update is finite where advantages are 0, the policy has moved far, or there is one token."""
    controller = built(spec, settings)
    batch = ragged_batch(1)
    t, one = batch.tokens, torch.tensor([0])
    zero = replace(batch, tokens=replace(t, advantage=torch.zeros_like(t.advantage)))
    far = replace(batch, tokens=replace(t, old_logp=t.get("logp") - 60.0))
    cases = {"all advantages are 0": (zero, everything(batch)), "π/π_old is e^60": (far, everything(batch))}
    for name, (tried, part) in {**cases, "there is one token": (batch, one)}.items():
        if not bool(gradient(controller, tried, part).isfinite().all()):
            return f"the update is not finite if {name}"
    return ""


def micro_batches(spec: str, settings: Mapping[str, Any]) -> str:
    """The update does not depend on the micro-batches."""
    for seed in SEEDS:
        batch = ragged_batch(seed)
        controller, whole = built(spec, settings), everything(batch)
        sequences = batch.tokens.get("seq_id").unique()
        cut = [torch.isin(batch.tokens.get("seq_id"), some).nonzero()[:, 0] for some in sequences.tensor_split(3)]
        if apart(gradient(controller, batch, whole, cut), gradient(controller, batch, whole)) > TOLERANCE:
            return f"three micro-batches give another update than one, in mini-batch {seed}"
    return ""


def order(spec: str, settings: Mapping[str, Any]) -> str:
    """The update does not depend on the order of the responses."""
    for seed in SEEDS:
        batch = ragged_batch(seed)
        controller = built(spec, settings)
        sequences = batch.tokens.get("seq_id").unique().flip(0)
        turned = torch.cat([(batch.tokens.get("seq_id") == s).nonzero()[:, 0] for s in sequences])
        if apart(gradient(controller, batch, turned), gradient(controller, batch, everything(batch))) > TOLERANCE:
            return f"responses in another order give another update, in mini-batch {seed}"
    return ""


def side_by_side(spec: str, settings: Mapping[str, Any]) -> str:
    """Runs along a leading dimension do not see each other."""
    batch = ragged_batch(2)

    def tokens(run: int) -> Tokens:
        values = {name: getattr(batch.tokens, name) for name in vars(batch.tokens)}
        values["truncated_entropy"] = values["entropy"] / 2
        scaled = {name: values[name] * SCALES[run] for name in SCALED}
        return Tokens(**{**values, **scaled, "advantage": values["advantage"].roll(run)})

    runs = [tokens(run) for run in range(len(SCALES))]
    together = Tokens(
        **{
            name: value if name in IDS else torch.stack([getattr(one, name) for one in runs])
            for name, value in vars(runs[0]).items()
        }
    )
    found = _coefficients(spec, settings, together, torch.tensor(SCALES, dtype=torch.float64))
    for run, one in enumerate(runs):
        expected = _coefficients(spec, settings, one, SCALES[run])
        for ours, theirs in zip(found, expected, strict=True):
            if (ours is None) != (theirs is None):
                return f"run {run} has a bonus only {'beside others' if theirs is None else 'alone'}"
            if ours is not None and theirs is not None:
                mine = ours.expand(len(runs), *theirs.shape)[run]
                if apart(mine, theirs) > TOLERANCE:
                    return f"run {run} of {len(runs)} has another update beside the others than alone: use torch.where"
    return ""


def _coefficients(
    spec: str, settings: Mapping[str, Any], tokens: Tokens, scale: float | Tensor
) -> tuple[Tensor, Tensor | None]:
    """Return ∂loss/∂logp and ∂loss/∂H of the tokens after observing ENTROPIES times `scale`."""
    controller = make(spec, **settings)
    planned: Mapping[str, Tensor] = {}
    for step, entropy in enumerate(ENTROPIES):
        controller.observe(stats(entropy * scale, step, planned))
        _ = controller.temperature
        plan = controller.plan(tokens, seed=3, step=9)
        planned = plan.info
    return plan.coefficients(tokens.get("logp"), tokens.get("entropy"))


def ranks(spec: str, settings: Mapping[str, Any]) -> str:
    """Updates of ranks that share a mini-batch add up to the update of one process; a rank may have no token."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, args=(spec, dict(settings), folder), nprocs=RANKS)
        parts = [torch.from_numpy(np.load(Path(folder) / f"{rank}.npy", allow_pickle=False)) for rank in range(RANKS)]
    for number, seed in enumerate(SEEDS):
        batch = ragged_batch(seed)
        summed = sum((part[number] for part in parts), torch.zeros_like(batch.weight))
        if apart(summed, gradient(built(spec, settings), batch, everything(batch))) > TOLERANCE:
            return f"{RANKS} ranks give another update than one process, in mini-batch {seed}: use context.reduce"
    return ""


def _rank(rank: int, spec: str, settings: dict[str, Any], folder: str) -> None:
    """Save this rank's part of the update of each mini-batch."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    found = []
    for batch in map(ragged_batch, SEEDS):
        part = (batch.rank_of_group(RANKS)[batch.tokens.get("group_id")] == rank).nonzero()[:, 0]
        found.append(gradient(built(spec, settings), batch, part, reduce=DistReduce()))
    np.save(f"{folder}/{rank}.npy", torch.stack(found).numpy())
    dist.destroy_process_group()


def plans_change_nothing(spec: str, settings: Mapping[str, Any]) -> str:
    """`plan` leaves the state alone, and gives the same plan again."""
    controller, batch = built(spec, settings), ragged_batch(3)
    before, tokens = controller.state_dict(), batch.tokens.select(everything(batch))
    tokens = replace(tokens, truncated_entropy=tokens.get("entropy") / 2)
    first, second = (gradient(controller, batch, everything(batch)) for _ in range(2))
    if name := _changed(before, controller.state_dict()):
        return f"plan changes the state {name}: only observe may"
    controller.plan(tokens, seed=3, step=9)
    if name := _changed({name: x for name, x in vars(batch.tokens).items() if x is not None}, vars(tokens)):
        return f"plan writes into Tokens.{name}, which is the trainer's"
    return "" if torch.equal(first, second) else "the same plan made again gives another update"


def checkpoint(spec: str, settings: Mapping[str, Any]) -> str:
    """A controller with the state of another goes on as that one does."""
    first, second, batch = built(spec, settings), make(spec, **settings), ragged_batch(4)
    second.load_state_dict(first.state_dict())
    for controller in (first, second):
        controller.observe(stats(0.7, len(ENTROPIES), {}))
    if name := _changed(first.state_dict(), second.state_dict()):
        return f"after a checkpoint the state {name} goes another way: name all that observe changes in `state`"
    whole = everything(batch)
    same = apart(gradient(second, batch, whole), gradient(first, batch, whole)) <= TOLERANCE
    return "" if same else "after a checkpoint the update is another: name all that observe changes in `state`"


def not_a_number(spec: str, settings: Mapping[str, Any]) -> str:
    """An entropy that is not finite moves nothing."""
    controller = built(spec, settings)
    for reading in (float("nan"), float("inf"), -float("inf")):
        before = [part.state_dict() for part in (controller.surrogate, *controller.parts)]
        controller.observe(stats(reading, len(ENTROPIES) - 1, {}))  # the step before, as states may follow it
        for old, part in zip(before, (controller.surrogate, *controller.parts), strict=True):
            if name := _changed(old, part.state_dict()):
                return f"an entropy of {reading} changes {part.name}'s state {name}"
    return ""


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the name of an entry that differs; "" if all are equal."""
    for name, value in before.items():
        if isinstance(value, Mapping):
            if inner := _changed(value, after[name]):
                return f"{name}.{inner}"
        elif not torch.equal(torch.as_tensor(value).nan_to_num(), torch.as_tensor(after[name]).nan_to_num()):
            return name
    return ""


CHECKS: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "acts": acts,
    "reads what it needs": declares,
    "finite": is_finite,
    "micro-batches": micro_batches,
    "order": order,
    "runs side by side": side_by_side,
    "plans change nothing": plans_change_nothing,
    "keeps its state": keeps_its_state,
    "checkpoint": checkpoint,
    "not a number": not_a_number,
    "ranks": ranks,
}
"""Checks by name, the quick ones first."""
