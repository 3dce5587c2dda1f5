"""Contenders: each line of text defines one entry of a comparison.

    clip_higher+entropic kp=1 tau=0
    careful: thermostat mode=both target=0.8
    other rewards: grpo env=det lr=2.0

A line has an optional name with a colon, names of controllers joined by +, and settings: hyperparameters of the
controllers, or else the contender's own target, environment or numbers of the bandit. The page supplies the rest.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, get_args, get_type_hints

from entrostat import Chain, list_controllers, make
from entrostat.about.lineup import SUITED, Entry, entries
from entrostat.by_name import hyperparameters
from entrostat.settings.allowed import allowed
from entrostat.settings.choosing import unknown
from entrostat.settings.commandline import parse_settings
from entrostat.settings.schedules import is_schedule, split
from toybandit import ENVIRONMENTS, Config, Environment
from toybandit.control import build_controller
from toybandit.sweep.grid import AXES

from ...shared.bandit import SHARED, files

MOST = 8
"""Upper limit of contenders in one comparison: the number of distinct colours, dashes and shapes."""
SETTINGS = tuple(name for name in AXES if name not in ("controller_args", "device", "dtype"))
"""Fields of Config that a line may set."""
KINDS = {name: {hint, *get_args(hint)} for name, hint in get_type_hints(Config).items()}
"""Types of the fields of Config."""
CHOICES = {"env": tuple(ENVIRONMENTS)}
CHOICES |= {name: names for name in SETTINGS if isinstance(names := allowed(Config, name), tuple)}
WRITTEN = ("lr", "group", "passes", "states", "rollouts")
"""Numbers of the bandit that a pinned line always states, because the page has controls for them."""
OF_SHARED = ("features", "pool", "coupling", "lr")
"""Numbers of the page that a line does not take over from the environment `features`, or into it."""
NAME = re.compile(r"[\w +\-.,=()/%]{1,60}")
VALUE = re.compile(r"[\w.+\-/]+|(?:linear|cosine|piecewise)\([\w.+\-:, ]*\)")
LONGEST, PASSES, ROLLOUTS = 16, 256, 10_000
"""Upper limits on time for a link: tokens of a response, updates per rollout, rollouts."""
LARGEST, TOKENS, KEPT, SHARED_NUMBERS = 4_096, 65_536, 2_000_000, 6_000_000
"""Upper limits on memory for a link: numbers of a policy, tokens of a rollout, numbers of all kept policies and of all
features."""
PLAIN = Config()


@dataclass(frozen=True, kw_only=True)
class Contender(Entry):
    """Leaderboard entry with its own name and bandit."""

    label: str
    config: Config = field(compare=False)

    @property
    def name(self) -> str:
        """Name in pictures and tables."""
        return self.label


def options() -> tuple[str, ...]:
    """Return a line per leaderboard entry: every controller as published, and with values that suit a bandit."""
    return tuple(_line("grpo" if entry.controller == "ppo" else entry.controller, entry.args) for entry in entries())


def parse(line: str, environment: Mapping[str, Any], target: float | None = None) -> Contender:
    """Return the contender of one line.

    environment: numbers of the bandit, arguments of Config, which the line can override. target: entropy (nats) for a
    controller that holds one, which the line can override, too. Raises ValueError in one line that starts with the
    contender's name.
    """
    *before, rest = split(line, ":") if ":" in line else [line]
    colon, name = bool(before), before[0].strip() if before else ""
    words = list(filter(None, split(":".join([*before[1:], rest]))))
    called = (name or " ".join(words))[:60]
    try:
        if colon and not NAME.fullmatch(name):
            raise ValueError("a name has 1 to 60 letters, digits, spaces or + - _ . , = ( ) / %, and then a colon")
        if not words:
            raise ValueError("name a controller, such as grpo or thermostat")
        return _contender(called, words[0], words[1:], environment, target)
    except ValueError as error:
        raise ValueError(f"{called or 'A contender'}: {error}") from error


def _contender(
    name: str, controller: str, words: Sequence[str], environment: Mapping[str, Any], target: float | None
) -> Contender:
    args, numbers = _settings(_chain(controller), words)
    entry = next((e for e in SUITED if (e.controller, e.args) == (controller, args)), Entry(controller, args))
    if entry.has_target and not any(key.endswith(".target") for key in args):
        numbers.setdefault("target", target)
    page, here = environment.get("env"), numbers.get("env")
    if here not in (None, page) and SHARED in (page, here):  # another update rule, to which these do not apply
        environment = {key: value for key, value in environment.items() if key not in OF_SHARED}
    bandit = dict(environment) | numbers
    choice = {key: bandit[key] for key in ("env", "gradient") if key in bandit}
    if Config(**choice).environment().enumerated and "group" not in numbers:
        bandit["group"] = None
    config = Config(**bandit, controller=controller, controller_args=args)
    for keys, size, most in _sizes(config.environment()):
        if size > most:
            raise ValueError(f"too large for a page: {keys} may be at most {most:,}")
    build_controller(config, 1)
    return Contender(controller, args, entry.open_loop, label=name, config=config)


def _sizes(environment: Environment) -> Iterator[tuple[str, int, int]]:
    """Yield keys, their size and its upper limit; length first: if it is large, the others take long to compute."""
    yield "length", environment.length, LONGEST
    yield "passes", environment.passes, PASSES
    yield "rollouts", environment.rollouts, ROLLOUTS
    numbers, responses = environment.rows * environment.arms, environment.group or 2 * environment.arms
    yield "states × arms", numbers, LARGEST
    yield "states × group × length", environment.states * responses * environment.length, TOKENS
    yield "rollouts × states × arms", environment.rollouts * numbers, KEPT
    prompts = environment.prompts + environment.held_out
    yield "prompts × length × features", prompts * environment.nodes * (environment.features or 0), SHARED_NUMBERS


@lru_cache(maxsize=256)
def _chain(controller: str) -> Chain:
    """Return the chain with its default values. Raises ValueError that suggests the closest name if one is unknown."""
    for name in controller.split("+"):
        if name not in list_controllers():
            raise ValueError(unknown("controller", name, list_controllers()))
    return make(controller)


def _settings(chain: Chain, words: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return hyperparameters and fields of Config from `key=value` words."""
    owned = {key for part in (chain.surrogate, *chain.parts) for key in hyperparameters(type(part))} - {"target"}
    args: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for word in words:
        key, _, text = word.partition("=")
        if not VALUE.fullmatch(text):
            raise ValueError(f"expected key=value, such as lr=0.5, not {word!r}")
        if key in args or key in fields:
            raise ValueError(f"{key} is set twice")
        if key in owned or "." in key:
            args |= parse_settings([word])
            if args[key] != args[key]:
                raise ValueError(f"{key} must not be nan")
        elif key in SETTINGS or key == "target":
            fields[key] = _value(key, text)
        else:
            raise ValueError(unknown("setting", key, [*owned, "target", *SETTINGS]))
    return args, fields


def _value(key: str, text: str) -> Any:
    """Return the value of a field of Config."""
    if key in CHOICES:
        known = (*CHOICES[key], *(files() if key == "env" else ()))
        if text not in known:
            raise ValueError(unknown(key, text, known))
        return text
    kinds = KINDS[key]
    if is_schedule(text) or (str in kinds and float not in kinds):
        return text
    try:
        value = int(text) if int in kinds else float(text)
        if math.isfinite(value):
            return value
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{key} must be {'a whole number' if int in kinds else 'a number'}, not {text!r}")


def parse_all(
    lines: Iterable[str], environment: Mapping[str, Any], target: float | None = None
) -> tuple[list[Contender], list[str]]:
    """Return the contenders of all nonblank lines, at most MOST, and an error line for each that cannot take part."""
    found: dict[str, Contender] = {}
    errors: list[str] = []
    for line in filter(str.strip, lines):
        try:
            contender = parse(line, environment, target)
        except ValueError as error:
            errors.append(str(error))
            continue
        if contender.name in found:
            errors.append(f"{contender.name}: two contenders have this name; rename one, as in NAME: grpo")
        elif len(found) == MOST:
            errors.append(f"{contender.name}: left out, at most {MOST} contenders are shown; remove another one")
        else:
            found[contender.name] = contender
    return list(found.values()), errors


def pinned(contender: Contender, name: str) -> str:
    """Return the line with this name that gives the same run on any page. Raises ValueError if the name is invalid."""
    if not NAME.fullmatch(name):
        raise ValueError("a name has 1 to 60 letters, digits, spaces or + - _ . , = ( ) / %")
    config = contender.config
    environment = config.environment()
    changed = {key: getattr(config, key) for key in SETTINGS if getattr(config, key) != getattr(PLAIN, key)}
    written = {key: getattr(environment, key) for key in WRITTEN if getattr(environment, key) is not None}
    target = {} if config.target is None else {"target": config.target}
    settings = {**config.controller_args, **target, "env": config.env, **changed, **written}
    return f"{name}: {_line(config.controller, settings)}"


def _line(controller: str, settings: Mapping[str, Any]) -> str:
    values = {key: str(value).lower() if isinstance(value, bool) else value for key, value in settings.items()}
    return " ".join([controller, *(f"{key}={value}" for key, value in values.items())])
