"""Description of every controller, surrogate and advantage as data; docs/controllers.md is generated from it."""

import ast
import inspect
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from .. import advantages, registry
from ..advantages import REGISTRY as ADVANTAGES
from ..by_name import ALIASES, PRESETS, REGISTRY
from ..controller import Controller
from ..numbers.quadrants import QUADRANTS as STEER_QUADRANTS
from ..reads import needs_of
from ..settings.allowed import allowed
from ..settings.choosing import unknown
from ..settings.importing import plug_ins
from ..surrogates import SurrogateController

KINDS = ("surrogate", "controller", "advantage")
QUADRANTS = {numeral: quadrant.tokens for numeral, quadrant in STEER_QUADRANTS.items()}
"""Tokens of each quadrant, in words."""


def describe(name: str, kind: str | None = None) -> dict[str, Any]:
    """Return the description of `name`, a name that `make` or `get_advantage` takes. A plug-in is imported.

    kind: surrogate, controller or advantage, if several kinds share the name; None tries advantages last.
    Keys: name, kind, rule (its formula, in one line), notes, needs (fields of Tokens, or keyword arguments), state,
    hyperparameters (name to default, allowed and doc), presets (differences from the defaults), source, quadrants.
    Raises ValueError on an unknown name.
    """
    if name not in {*REGISTRY, *ALIASES, *ADVANTAGES}:
        name = _imported(name)
    cls = REGISTRY.get(ALIASES.get(name, name))
    if cls is not None and kind in (None, _kind(cls)):
        return _describe_class(cls)
    if name in ADVANTAGES and kind in (None, "advantage"):
        return _describe_advantage(name)
    known = dict.fromkeys([*ALIASES, *(known for kind in KINDS for known in names(kind))])
    raise ValueError(unknown(kind or "name", name, known, f"choose from {', '.join(known)}"))


def _imported(name: str) -> str:
    """Return the name by which a plug-in is registered once it is imported; `name` itself if no plug-in has it."""
    loaders = ((registry.GROUPS, registry.imported), ((advantages.GROUP,), advantages.imported))
    found = [load(name) for groups, load in loaders if name in {entry.name for entry in plug_ins(*groups)}]
    return found[0] if found else name


def names(kind: str) -> list[str]:
    """Return the names of a kind without aliases: classes sorted, advantages in the order of their registry."""
    if kind == "advantage":
        return list(ADVANTAGES)
    return sorted(name for name, cls in REGISTRY.items() if _kind(cls) == kind)


def _kind(cls: type[Controller]) -> str:
    return "surrogate" if issubclass(cls, SurrogateController) else "controller"


def _describe_class(cls: type[Controller]) -> dict[str, Any]:
    rule, notes = _split(cls.__doc__)
    docs = _field_docs(cls)
    return {
        "name": cls.name,
        "kind": _kind(cls),
        "rule": rule,
        "notes": notes,
        "needs": sorted(needs_of(cls())),
        "state": list(cls.state),
        "hyperparameters": {
            f.name: {"default": f.default, "allowed": allowed(cls, f.name), "doc": docs.get(f.name, "")}
            for f in fields(cls)  # type: ignore[arg-type]
            if f.default is not MISSING
        },
        "presets": {preset: dict(cls.presets.get(preset, {})) for preset in PRESETS},
        "source": cls.source,
        "quadrants": list(cls.quadrants),
    }


def _describe_advantage(name: str) -> dict[str, Any]:
    entry = ADVANTAGES[name]
    rule, notes = _split(entry.function.__doc__)
    parameters = inspect.signature(entry.function).parameters
    return {
        "name": name,
        "kind": "advantage",
        "rule": rule,
        "notes": notes,
        "needs": ["reward", "group_id", *entry.needs],
        "state": [],
        "hyperparameters": {
            key: {"default": parameters[key].default, "allowed": allowed, "doc": doc}
            for key, (doc, allowed) in entry.hyperparameters.items()
        },
        "presets": {preset: {} for preset in PRESETS},
        "source": entry.source,
        "quadrants": list(entry.quadrants),
    }


def interval(hyperparameter: Mapping[str, Any]) -> str:
    """Return `, in [0, 1)` for a number with a range; empty for a choice of names, which the doc lists."""
    allowed = hyperparameter["allowed"]
    return f", in {allowed.replace('inf', '∞').replace('-', '−')}" if isinstance(allowed, str) else ""


def _split(doc: str | None) -> tuple[str, str]:
    """Return the first line and the rest of a docstring."""
    rule, _, notes = inspect.cleandoc(doc or "").partition("\n")
    return rule, notes.strip()


def _field_docs(cls: type) -> Mapping[str, str]:
    """Return the docstring under each field of a dataclass, including inherited fields."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not is_dataclass(base):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for node, following in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
                and isinstance(following.value.value, str)
            ):
                docs[node.target.id] = " ".join(following.value.value.split())
    return docs


# Markdown ---------------------------------------------------------------------------------------------------------

HEADER = """# Surrogates, controllers and advantages

Made by `python -m entrostat docs > docs/controllers.md`; a test fails when it is stale.

Per response token: lp = log π, old = log π_old, r = π/π_old, A the advantage, H the entropy of the current policy at
the token's position (nats), p = π; Ĥ the mean entropy of the last rollout, N the tokens of the optimizer mini-batch
over all ranks, sg a stop-gradient. Every statistic is over the mini-batch and all ranks; statistics of a response or a
group need all of its tokens on one rank.

Quadrants (STEER, figure 2) are those in which a rule changes the update of plain PPO: """
SHARED = {field.name: field.default for field in fields(SurrogateController)}
"""Hyperparameters that all surrogates have."""


def markdown(measured: Mapping[str, Any] | None = None) -> str:
    """Return the page of all names. measured: output of benchmarks/measure_controllers.py; None if there is none."""
    text = HEADER + "; ".join(f"{key}: {value}" for key, value in QUADRANTS.items())
    text += ". I and III lower the entropy, II and IV raise it.\n"
    if measured is not None:
        text += f"\nMeasured in the simulator: {measured['setting']}\n"
    for kind in KINDS:
        text += f"\n## {kind.capitalize()}s\n"
        text += "\n" + _table([describe(name, kind) for name in names(kind)], measured and measured["results"])
    text += "\n## Needs, hyperparameters, sources\n"
    text += "\nEvery surrogate also has these; its own section names them only if its default differs:\n\n"
    text += "".join(f"- {line}\n" for line in _hyperparameters(describe("ppo"), SHARED))
    for kind in KINDS:
        for name in names(kind):
            text += "\n" + _details(describe(name, kind))
    return text


def _table(found: Sequence[Mapping[str, Any]], results: Mapping[str, Any] | None) -> str:
    with_measured = results is not None and found[0]["kind"] != "advantage"
    columns = ["name", "rule", *(["entropy, reward"] if with_measured else [])]
    rows = [columns, ["---"] * len(columns)]
    for about in found:
        anchor = about["name"] + ("-advantage" if about["kind"] == "advantage" else "")
        cells = [f"[`{about['name']}`](#{anchor})", about["rule"]]
        rows.append([*cells, _measurement(results.get(about["name"]))] if results and with_measured else cells)
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def _measurement(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "not measured"
    start, end = result["entropy"]
    return f"{start:.2f} → {end:.2f}, {result['reward']:.3f}"


def _details(about: Mapping[str, Any]) -> str:
    text = f"### `{about['name']}`" + (" (advantage)" if about["kind"] == "advantage" else "") + "\n"
    text += f"\n{about['rule']}\n"
    if about["notes"]:
        text += f"\n{about['notes']}\n"
    told = {
        "Source": about["source"],
        "Needs": ", ".join(f"`{name}`" for name in about["needs"]),
        "State": ", ".join(f"`{name}`" for name in about["state"]),
        "Quadrants": ", ".join(about["quadrants"]),
    }
    text += "\n" + ". ".join(f"{name}: {value}" for name, value in told.items() if value) + ".\n"
    own = {key: h["default"] for key, h in about["hyperparameters"].items()}
    if about["kind"] == "surrogate":
        own = {key: default for key, default in own.items() if default != SHARED.get(key)}
    lines = [f"- {line}" for line in _hyperparameters(about, own)]
    lines += [
        f"- preset `{preset}`: " + ", ".join(f"{key}={_value(value)}" for key, value in changes.items())
        for preset, changes in about["presets"].items()
        if changes
    ]
    return text + ("\n" + "\n".join(lines) + "\n" if lines else "")


def _hyperparameters(about: Mapping[str, Any], keys: Iterable[str]) -> list[str]:
    """Return what these hyperparameters are: default, range and meaning."""
    found = about["hyperparameters"]
    return [
        f"`{key}` = {_value(found[key]['default'])}{interval(found[key])}"
        + (f": {found[key]['doc']}" if found[key]["doc"] else "")
        for key in keys
    ]


def _value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return "∞" if math.isinf(value) else f"{value:g}"
