"""Recipes: a published run as a table of settings, each with its source.

    get_recipe("steer/qwen2.5-math-7b").values["rollout.prompts"]  ->  Value(512, "paper", "D.2")

A file recipes/<paper>/<run>.yaml extends another file of its folder, such as base, and holds

    about: one line
    values: {rollout.prompts: [512, paper, D.2], ...}     keys of the trainer; VALUE, KIND OF SOURCE, PLACE
    stated_only: {...}                                    what the paper states and the trainer has no setting for
    placement: {8: {gpu: h100}, ...}                      keys of `llmtrain plan` for a number of GPUs; ours
    prepare: [llmtrain subset --data {data}/..., ...]     commands that prepare and train it, in their order

An entry that is null leaves out what the extended file says.
`model.path` names a model of the hub, `data.train_files` and `data.val_files` name data sets of data_sets.yaml.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from entrostat.settings.plain_yaml import load_yaml

FOLDER = Path(__file__).parent
KINDS = {
    "paper": "stated in the paper",
    "script": "in the authors' released script",
    "verl": "default of verl, the paper's trainer",
    "ours": "not stated: our choice",
}
"""Kinds of sources, by their name in the files."""
NEEDED = ("model.path", "data.train_files", "rollout.prompts", "rollout.n", "rollout.max_new_tokens", "controller")
BASE = "base"
"""Name of the file with the settings that the runs of a paper share; it is no recipe itself."""


@dataclass(frozen=True)
class Value:
    """Setting with its source."""

    value: Any
    kind: str
    """Key of KINDS."""
    where: str = ""
    """Section of the paper, name of the script, or reason of the choice."""

    @property
    def source(self) -> str:
        """Source in words."""
        if self.kind == "ours":
            return f"not stated: our choice{f' ({self.where})' if self.where else ''}"
        return (
            f"{self.kind} {self.where}".strip()
            if self.kind != "verl"
            else f"verl's default{' ' * bool(self.where)}{self.where}"
        )


@dataclass(frozen=True)
class Recipe:
    """Published run."""

    name: str
    paper: str
    """Title and number on arXiv."""
    about: str
    """Run in one line."""
    values: Mapping[str, Value]
    """Settings of the trainer."""
    stated_only: Mapping[str, Value]
    """Statements of the paper that the trainer has no setting for."""
    placement: Mapping[int, Mapping[str, Any]]
    """Keys of `llmtrain plan` by number of GPUs."""
    prepare: tuple[str, ...] = ()
    """Commands that make its model or its data and train it, in their order. {name} is the recipe, {data} and {models}
    are the folders, {values[rollout.temperature]} is one of its settings."""

    def value(self, key: str, default: Any = None) -> Any:
        """Return the value of a setting, or `default` if the recipe does not set it."""
        return self.values[key].value if key in self.values else default

    @property
    def model(self) -> str:
        """Model on the hub, as owner/name."""
        return str(self.value("model.path"))

    @property
    def data_sets(self) -> tuple[str, ...]:
        """Names of its data sets: for training, then for evaluation."""
        return (*self.value("data.train_files"), *self.value("data.val_files", ()))

    @property
    def gpus(self) -> int:
        """Number of GPUs of the smallest usual placement: 8, or the only one."""
        return 8 if 8 in self.placement or not self.placement else min(self.placement)


@cache
def names() -> tuple[str, ...]:
    """Return the names of all recipes, as paper/run."""
    files = sorted(FOLDER.glob("*/*.yaml"), key=lambda file: (file.parent.name, file.stem))
    return tuple(f"{file.parent.name}/{file.stem}" for file in files if not file.stem.startswith(BASE))


@cache
def get_recipe(name: str) -> Recipe:
    """Return the recipe called `name`. Raise ValueError with near names if there is none."""
    if name not in names():
        close = get_close_matches(name, names(), n=3, cutoff=0.4)
        words = [known for known in names() if name and name in known]
        near = ", ".join(dict.fromkeys([*close, *words[:3]]))
        meant = f"did you mean {near}? " if near else ""
        raise ValueError(f"unknown recipe {name!r}: {meant}llmtrain recipes lists all of them")
    content = _content(name)
    return Recipe(
        name=name,
        paper=content.get("paper", ""),
        about=content.get("about", ""),
        values=_values(name, content["values"]),
        stated_only=_values(name, content["stated_only"]),
        placement=content["placement"],
        prepare=tuple(content.get("prepare", ())),
    )


def _content(name: str) -> dict[str, Any]:
    """Return the content of a file, laid over that of the file it extends."""
    own = load_yaml(FOLDER / f"{name}.yaml")
    parent = _content(f"{name.partition('/')[0]}/{own['extends']}") if "extends" in own else {}
    tables = {key: parent.get(key, {}) | (own.get(key) or {}) for key in ("values", "stated_only", "placement")}
    kept = {name: {key: entry for key, entry in table.items() if entry is not None} for name, table in tables.items()}
    return parent | own | kept


def _values(name: str, table: Mapping[str, Any]) -> dict[str, Value]:
    """Return the settings of a table. Raise ValueError for an entry that is not [value, kind, place]."""
    found = {}
    for key, entry in table.items():
        if not (isinstance(entry, list) and len(entry) in (2, 3) and entry[1] in KINDS):
            raise ValueError(f"recipe {name}: {key} must be [value, {' or '.join(KINDS)}, place]; got {entry!r}")
        found[key] = Value(entry[0], entry[1], str(entry[2]) if len(entry) == 3 else "")
    return found


@cache
def data_sets() -> Mapping[str, Mapping[str, Any]]:
    """Return the data sets of recipes by name: their file and where it is published."""
    found: dict[str, dict[str, Any]] = load_yaml(FOLDER / "data_sets.yaml")
    return found
