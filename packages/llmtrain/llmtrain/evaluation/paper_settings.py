"""Evaluation settings of the papers: temperature, top-p, samples and length for each benchmark.

    PRESETS["steer"].of("aime_2024_dapo_boxed")  ->  Sampling(temperature=1.0, top_p=0.7, samples=32, ...)

A benchmark is recognised by the `data_source` of its rows or by its file name. Torch-free.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ..settings.config import TrainConfig
from ..settings.sampling import Sampling

_MARKS = {
    "aime24": r"aime\D*(20)?24",
    "aime25": r"aime\D*(20)?25",
    "amc23": r"amc",
    "math500": r"math\W*_?500|^math$",
    "minerva": r"minerva",
    "olympiadbench": r"olympiad",
    "omni_math": r"omni\W*_?math",
    "gsm8k": r"gsm\W*_?8k",
    "countdown": r"countdown",
    "livecodebench": r"live\W*_?code\W*_?bench|code_generation_lite",
}
BENCHMARKS = tuple(_MARKS)
COMPETITIONS = ("aime24", "aime25", "amc23")
"""Benchmarks of 30 to 40 questions, which papers sample many times."""


@dataclass(frozen=True)
class Settings:
    """Evaluation settings of one paper."""

    source: str
    """Paper and section that state the settings."""
    other: Sampling
    """Settings for all benchmarks not in `by_benchmark`."""
    by_benchmark: Mapping[str, Sampling] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, source: str) -> Sampling:
        """Return the sampling of the benchmark with data source or file name `source`."""
        return self.by_benchmark.get(benchmark(source), self.other)


def benchmark(source: str) -> str:
    """Return the benchmark of a data source or file name (aime24 for aime_2024_dapo_boxed), or `source` if unknown."""
    name = source.lower().removesuffix(".parquet").removesuffix(".jsonl")
    found = (known for known, mark in _MARKS.items() if re.search(mark, name))
    return next(found, source)


def _same(names: tuple[str, ...], sampling: Sampling) -> Mapping[str, Sampling]:
    return MappingProxyType(dict.fromkeys(names, sampling))


_FOUR_TIMES = ("math500", "olympiadbench", "minerva", "omni_math")


def _entropic(max_new_tokens: int, model: str) -> Settings:
    return Settings(
        f"EntroPIC, B.2, {model} models",
        Sampling(temperature=0.6, top_p=0.95, samples=32, max_new_tokens=max_new_tokens),
        _same(_FOUR_TIMES, Sampling(temperature=0.6, top_p=0.95, samples=4, max_new_tokens=max_new_tokens)),
    )


def _nucleus(source: str, max_new_tokens: int, **samples: int) -> Settings:
    """Return settings with top-p 0.7; samples: other numbers of samples by benchmark."""
    once = Sampling(top_p=0.7, samples=1, max_new_tokens=max_new_tokens)
    many = dict.fromkeys(COMPETITIONS, 32) | samples
    return Settings(source, once, MappingProxyType({name: replace(once, samples=n) for name, n in many.items()}))


PRESETS: Mapping[str, Settings] = MappingProxyType(
    {
        "entropy_mechanism": Settings(
            "The Entropy Mechanism, F.2 and table 2: avg@32 on AIME and AMC, greedy elsewhere; top-p not stated",
            Sampling(temperature=0.0, samples=1, max_new_tokens=8192),
            _same(COMPETITIONS, Sampling(temperature=0.6, samples=32, max_new_tokens=8192)),
        ),
        "revisiting": Settings(
            "Revisiting Entropy, Appendix B: 64 samples for every benchmark; length as in its rollouts",
            Sampling(samples=64, max_new_tokens=4096),
        ),
        "steer": _nucleus("STEER, D.2, tables 3 and 5; length of its Qwen2.5 models", 3072, livecodebench=4),
        "opefo": _nucleus("OPEFO, 6.1; length as in its rollouts with Qwen2.5-Math-7B", 3000),
        "entropic": _entropic(8192, "non-thinking"),
        "entropic_reasoning": _entropic(65536, "reasoning"),
    }
)
"""Settings by name of the preset."""


def in_training(config: TrainConfig) -> Callable[[str], Sampling]:
    """Return a function from a source to its sampling in the evaluations of a run: eval.settings or as in rollouts."""
    own, said = replace(config.rollout.sampling, samples=config.eval.samples), _said(config)
    if not config.eval.settings:
        return lambda source: replace(own, **said)

    def of(source: str) -> Sampling:
        found = PRESETS[config.eval.settings].of(source)
        return replace(found, samples=min(found.samples, config.eval.max_samples or found.samples), **said)

    return of


def longest_response(config: TrainConfig) -> int:
    """Return the upper limit for response tokens in the evaluations of a run."""
    own = in_training(config)
    known = PRESETS[config.eval.settings].by_benchmark if config.eval.settings else ()
    return max(own(source).max_new_tokens for source in ("", *known))


def _said(config: TrainConfig) -> dict[str, Any]:
    """Return the fields of Sampling that `eval` sets itself."""
    said = {name: getattr(config.eval, name) for name in ("temperature", "top_p", "max_new_tokens")}
    return {name: value for name, value in said.items() if value is not None}
