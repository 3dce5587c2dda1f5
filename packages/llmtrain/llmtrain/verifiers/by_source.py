"""Verifiers by the source of a question, as in `math livecodebench=python ifeval=ifeval`.

    first word: verifier of all other sources          SOURCE=VERIFIER: verifier of the questions of a source

A source is the `data_source` of a row, or the name of its file.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .verdict import Verdict
from .verifier import Verifier


class Named(NamedTuple):
    """Names of verifiers."""

    rest: str
    """Verifier of all sources that are not in `by_source`."""
    by_source: Mapping[str, str]

    @classmethod
    def of(cls, text: str) -> "Named":
        """Return the verifiers that a text names. Raise ValueError for another form."""
        rest, *others = text.split() or [""]
        pairs = [word.partition("=") for word in others]
        if not rest or "=" in rest or not all(source and name for source, _, name in pairs):
            raise ValueError(
                f"{text!r} names no verifier: give one, and others by source if needed, such as "
                "'math livecodebench=python'"
            )
        return cls(rest, {source: name for source, _, name in pairs})

    def of_source(self, source: str) -> str:
        """Return the name of the verifier of a source."""
        return self.by_source.get(source, self.rest)

    @property
    def names(self) -> list[str]:
        """All names, each once."""
        return list(dict.fromkeys([self.rest, *self.by_source.values()]))


class BySource(Verifier):
    """Verifier that hands each response to the verifier of its question's source."""

    def __init__(self, named: Named, verifiers: Mapping[str, Verifier]) -> None:
        """verifiers: started verifiers by name; closed with this one, which has their failures and errors."""
        super().__init__()
        self.named, self.verifiers = named, verifiers
        for verifier in verifiers.values():
            verifier.failures, verifier.errors = self.failures, self.errors

    def __call__(
        self,
        responses: Sequence[str],
        ground_truths: Sequence[Any],
        sources: Sequence[str] = (),
        prompts: Sequence[Any] = (),
    ) -> list[Verdict]:
        """Return one verdict for each response, in order. Raise ValueError without a source for each."""
        if not len(responses) == len(ground_truths) == len(sources):
            raise ValueError("verifiers by source need the source of each question: name one verifier alone")
        verdicts: dict[int, Verdict] = {}
        for name, verifier in self.verifiers.items():
            places = [i for i, source in enumerate(sources) if self.named.of_source(source) == name]
            if places:
                asked = [prompts[i] for i in places] if prompts else ()
                judged = verifier([responses[i] for i in places], [ground_truths[i] for i in places], (), asked)
                verdicts.update(zip(places, judged, strict=True))
        return [verdicts[i] for i in range(len(responses))]

    def judge(self, responses: Sequence[str], ground_truths: Sequence[Any]) -> list[Verdict]:
        raise ValueError("verifiers by source need the source of each question")

    def close(self) -> None:
        """End the processes of all verifiers."""
        for verifier in self.verifiers.values():
            verifier.close()
