"""Claims: statements with a threshold, a null, and a function that measures and judges. A registry for each simulator.

    CLAIMS = Claims(Claim, group="toybandit.claims", listed="docs/theory.md lists the names")

    @CLAIMS.claim("mine", words=..., threshold=..., null=..., mutations=(Fault("the sign were wrong", negated),))
    def mine(subject):
        "Meaning of the claim, in a sentence."
        ... return Finding(measured, numbers, verdict)

A verdict follows from measurements alone. `expected` is the known verdict; a different one means an error in the code
or a new result about the claim. Each mutation is a fault that must turn the verdict: a claim that none can turn says
nothing.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from inspect import getdoc
from pathlib import Path
from traceback import extract_tb
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ..settings import choosing
from ..settings.importing import is_made_again, outside, plug_ins

HOLDS = "holds"
FAILS = "fails as stated"
OPEN = "open"


class Finding(NamedTuple):
    """Result of a claim's function."""

    measured: str
    """Measurements as text."""
    numbers: dict[str, float]
    """Measurements as numbers."""
    verdict: str
    false_failure: float = 0.0
    """Probability that fresh seeds give another verdict, or an upper bound; 0 if the verdict uses no random numbers."""
    null: str = ""
    """Measurements of the null, as text."""
    margins: tuple[Any, ...] = ()
    """Differences that the verdict follows from, if it keeps them."""


Check = Callable[[Any], Finding]
"""Function of what is measured: an effort in the bandit, runs of a language model."""


class Fault(Protocol):
    """Fault in what a claim tests. Its name completes "the verdict turns if …"."""

    @property
    def name(self) -> str: ...

    def finding(self, check: Check, subject: Any) -> Finding:
        """Return what the check finds with the fault."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Claim with its result, an entry of a report."""

    name: str
    paper: str
    source: str
    words: str
    meaning: str
    """Explanation in a sentence or a few."""
    assumption: str
    setting: str
    threshold: str
    null: str
    measured: str
    measured_null: str
    numbers: dict[str, float]
    verdict: str
    false_failure: float
    expected: str
    mutations: tuple[str, ...]
    """Names of the faults that must turn the verdict."""
    mutated: dict[str, str] | None = None
    """Verdict under each of the mutations; None if they were not measured."""
    margins: tuple[Any, ...] = ()

    @property
    def as_expected(self) -> bool:
        return self.verdict == (self.expected or self.verdict)

    @property
    def unnoticed(self) -> tuple[str, ...]:
        """Mutations that left the verdict as it was."""
        return tuple(name for name, verdict in (self.mutated or {}).items() if verdict == self.verdict)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Claim and the function that checks it."""

    name: str
    paper: str = ""
    source: str = ""
    """Place in the paper."""
    words: str = ""
    """Statement of the paper, in our words."""
    assumption: str = ""
    setting: str = ""
    """Setting of the paper, if ours differs from it."""
    threshold: str
    """Criterion of ours for the verdict, set before the measurement, and the reason for it."""
    null: str
    """Simpler explanation that the claim must beat or be told apart from."""
    expected: str = ""
    """The known verdict; empty if there is none yet."""
    mutations: tuple[Any, ...]
    """Faults, each a `Fault`."""
    needs: tuple[str, ...] = ()
    """Names of the measurements that the check reads, if it is handed measurements."""
    check: Check

    def __call__(self, subject: Any, *, power: bool = False) -> Record:
        """Measure the claim; `power`: also under each of its mutations.

        Raises ValueError, one line, if the check fails or returns no finding.
        """
        found = self.found(self.check, subject)
        mutated = {mutation.name: self.verdict_under(mutation, subject) for mutation in self.mutations if power}
        return Record(
            name=self.name,
            paper=self.paper,
            source=self.source,
            words=self.words,
            meaning=" ".join((getdoc(self.check) or "").split()),
            assumption=self.assumption,
            setting=self.setting,
            threshold=self.threshold,
            null=self.null,
            measured=found.measured,
            measured_null=found.null,
            numbers=found.numbers,
            verdict=found.verdict,
            false_failure=found.false_failure,
            expected=self.expected,
            mutations=tuple(mutation.name for mutation in self.mutations),
            mutated=mutated if power else None,
            margins=found.margins,
        )

    def verdict_under(self, mutation: Fault, subject: Any) -> str:
        """Return the verdict that the claim gets with a fault in what it tests."""
        try:
            return mutation.finding(lambda given: self.found(self.check, given), subject).verdict
        except AttributeError as error:
            raise ValueError(f"claim {self.name!r}, mutation {mutation.name!r}: {error}") from None

    def found(self, check: Check, subject: Any) -> Finding:
        """Return what the check finds. Raises ValueError with the claim's name and the check's own line if it fails."""
        try:
            found: Any = check(subject)
        except Exception as error:
            frames = extract_tb(error.__traceback__)[1:]
            own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
            place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
            raise ValueError(f"claim {self.name!r} fails: {type(error).__name__}: {error}{place}") from error
        if not isinstance(found, Finding):
            raise ValueError(f"claim {self.name!r}: its function returned a {type(found).__name__}, not a Finding")
        return found


C = TypeVar("C", bound=Claim)


class Claims(dict[str, C], Generic[C]):
    """Claims by name, in the order of their report. Others are named `module:claim`, or by a plug-in's entry point."""

    def __init__(self, kind: type[C], *, group: str, listed: str = "") -> None:
        """kind: class of the claims. group: entry points of plug-ins.

        listed: where the names are, if messages shall not list them.
        """
        super().__init__()
        self.kind, self.group, self.listed = kind, group, listed

    def claim(self, name: str, **given: Any) -> Callable[[Check], C]:
        """Register the decorated function as the check of a claim; fields as in its class.

        Raises ValueError on a name that is taken, on an unknown field and if one is missing.
        """
        known = [field.name for field in fields(self.kind) if field.name not in ("name", "check")]
        if odd := [key for key in given if key not in known]:
            raise ValueError(f"claim {name!r} has no field {odd[0]}; its fields are {', '.join(known)}")

        def add(check: Check) -> C:
            if name in self and not is_made_again(self[name].check, check):
                raise ValueError(f"claim {name!r} is registered twice")
            try:
                self[name] = self.kind(name=name, check=check, **given)
            except TypeError as error:
                raise ValueError(f"claim {name!r}: {str(error).partition(' ')[2]}") from None
            return self[name]

        return add

    def choose(self, names: Collection[str] = (), pattern: str = "") -> list[C]:
        """Return the claims with these names or with `pattern` in their name (* and ? as in a shell)."""
        own = [name if name in self else self.loaded(name) for name in names]
        return choosing.choose(self, own, pattern, kind="claim", listed=self.where)

    @property
    def where(self) -> str:
        """Where the names of the claims are, for messages."""
        mine = ", ".join(self.plugged())
        return (self.listed or f"choose from {', '.join(self)}") + (f"; plug-ins have {mine}" if mine else "")

    def loaded(self, name: str) -> str:
        """Import the claim at `module:claim` or at an entry point, and return its own name; other names as they are.

        Raises ValueError if it cannot be imported, or is no claim.
        """
        if ":" not in name and name not in self.plugged():
            return name
        where = outside("claim", name, (), self.group, form="module:claim")
        found = where.load()
        if not isinstance(found, self.kind) or self.get(found.name) is not found:
            raise ValueError(f"{where} is a {type(found).__name__}, not a function under @claim")
        return found.name

    def plugged(self) -> list[str]:
        """Return the names of the claims of installed plug-ins, which are not imported."""
        return [entry.name for entry in plug_ins(self.group)]

    def with_plug_ins(self) -> list[str]:
        """Import the claims of all plug-ins; return a line for each that cannot be."""
        problems = []
        for name in self.plugged():
            try:
                self.loaded(name)
            except ValueError as error:
                problems.append(str(error))
        return problems
