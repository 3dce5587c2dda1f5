"""Model and data sets of a recipe: where they lie, what is missing, and where to get it. No torch."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..plan.architecture import BF16, get_architecture
from ..process.text import one_line
from ..recipes.recipe import Recipe, data_sets

GATED = ("meta-llama", "mistralai")
"""Owners on the hub who ask for consent to a licence before their models can be downloaded."""
SOURCES = {"hub": "dataset", "url": "", "made": "made", "own": "own"}
"""Kind of an ingredient by the key of data_sets.yaml that says where it comes from."""
MODELS = "models"
"""Folder that models are fetched to, unless the command line names another."""


def data_folder() -> str:
    """Return the usual folder of data sets: that of ENTROSTAT_DATA, or `data`."""
    return os.environ.get("ENTROSTAT_DATA") or "data"


@dataclass(frozen=True)
class Ingredient:
    """Model or data set of a recipe, and its place on this machine."""

    name: str
    path: Path
    source: str
    """Name on the hub, address, the command that makes it, or what a file of one's own must hold."""
    hub: str
    """Kind of repository on the hub, model or dataset; empty for a file with an address, made for one to be made, own
    for one that is not published."""
    size: str = ""
    note: str = ""
    """Caution about its rows or its address; empty for none."""

    @property
    def there(self) -> bool:
        """True if it lies in its place."""
        return (self.path / "config.json").is_file() if self.hub == "model" else self.path.exists()

    @property
    def made(self) -> bool:
        """True if a command makes it from another file."""
        return self.hub == "made"

    @property
    def own(self) -> bool:
        """True if it is not published, so that a file of one's own takes its place."""
        return self.hub == "own"

    @property
    def by_hand(self) -> str:
        """Command that gets it on a machine with a network."""
        kind = " --repo-type dataset" * (self.hub == "dataset")
        return {
            "made": f"run `{self.source}`",
            "own": f"it is not published: put a file of your own there, {self.source}",
            "": f"run `curl -L -o {self.path} {self.source}` where there is a network",
        }.get(self.hub, f"run `hf download {self.source}{kind} --local-dir {self.path}` where there is a network")

    @property
    def gated(self) -> bool:
        """True if its owner asks for consent to a licence."""
        return self.hub == "model" and self.source.partition("/")[0] in GATED


def model(recipe: Recipe, folder: str = MODELS) -> Ingredient:
    """Return the model of a recipe: in `folder`, or in the hub's cache if it is there only."""
    return hub_model(recipe.model, folder, f"about {BF16 * get_architecture(recipe.model).params / 1e9:,.0f} GB")


def hub_model(name: str, folder: str = MODELS, size: str = "") -> Ingredient:
    """Return the model of the hub called `name`: in `folder`, or in the hub's cache if it is there only."""
    path = Path(folder) / name.rpartition("/")[2]
    if not (path / "config.json").is_file() and (cached := _cached(name)):
        path = cached
    return Ingredient(name, path, name, "model", size)


def _cached(repository: str) -> Path | None:
    """Return the snapshot of a model in the hub's cache, None if there is none."""
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    found = try_to_load_from_cache(repository, "config.json")
    return Path(found).parent if isinstance(found, str) else None


def data(recipe: Recipe, folder: str, models: str = MODELS) -> dict[str, Ingredient]:
    """Return the data sets of a recipe by name, in `folder`, after those that they are made of. models: of models."""
    found: dict[str, Ingredient] = {}
    for name in dict.fromkeys(recipe.data_sets):
        of = data_sets()[name].get("of")
        found |= {one: _data_set(one, folder, models) for one in (of, name) if one and one not in found}
    return found


def _data_set(name: str, folder: str, models: str) -> Ingredient:
    entry = data_sets()[name]
    kind = next(kind for kind in SOURCES if kind in entry)
    source = entry[kind].format(data=folder, models=models) if kind == "made" else entry[kind]
    return Ingredient(name, Path(folder) / entry["file"], source, SOURCES[kind], note=entry.get("note", ""))


def missing(recipe: Recipe, folder: str, wanted: Ingredient | None, *, files: bool) -> str:
    """Return what this machine lacks of model and data sets and the command that gets it, in one line; "" for nothing.

    wanted: the model; None for one that is there. files: look for the data sets in `folder`, too.
    """
    gone = [item for item in data(recipe, folder).values() if files and item.name in recipe.data_sets]
    gone = [item for item in gone if not item.there]
    parts, commands, flags = [], [], f"{recipe.name} --data-dir {folder}"
    if wanted and not wanted.there:
        place = wanted.path.parent
        parts.append(f"model {wanted.source} in {place}")
        flags += f" --models-dir {place}" * (str(place) != MODELS)
        if wanted.gated:
            commands.append(f"accept its licence at https://huggingface.co/{wanted.source} and `hf auth login`, then")
    if gone:
        parts.append(f"{', '.join(item.path.name for item in gone)} in {folder}")
    if not parts:
        return ""
    if wanted and not wanted.there and wanted.source != recipe.model:
        commands.append(wanted.by_hand)
    else:
        commands.append(f"run `llmtrain recipes fetch {flags}`")
    named = " and ".join(["--model.path"] * (len(parts) > bool(gone)) + ["--data-dir"] * bool(gone))
    return f"recipe {recipe.name} lacks {' and '.join(parts)}: {' '.join(commands)}, or name their place with {named}"


def check_positions(recipe: Recipe, folder: Path) -> None:
    """Raise ValueError with the fix if the model takes shorter sequences than the recipe says it is set to take."""
    wanted = recipe.value("model.max_positions")
    try:
        has = json.loads((folder / "config.json").read_text()).get("max_position_embeddings", wanted)
    except (OSError, ValueError):
        return
    if wanted and has < wanted:
        raise ValueError(
            f"recipe {recipe.name} takes {wanted} positions and {folder} has {has}: "
            f"set max_position_embeddings to {wanted} in {folder / 'config.json'}"
        )


def fetch(items: list[Ingredient]) -> Iterator[str]:
    """Download what is missing, and yield a line for each item, last those to be made or brought, and how.

    Raises ValueError in one line if a download fails.
    """
    for item in sorted(items, key=lambda item: (item.made, item.own)):
        if item.there:
            yield f"there     {item.path}"
            continue
        if item.made:
            yield f"to make   {item.path}: {item.by_hand}"
            continue
        if item.own:
            yield f"to bring  {item.path}: {item.by_hand}"
            continue
        item.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _download(item)
        except Exception as error:  # the hub, its client and the network raise different errors
            consent = (
                f"accept its licence at https://huggingface.co/{item.source} and `hf auth login`, or " * item.gated
            )
            cause = f"{type(error).__name__}: {one_line(error, 160)}"
            raise ValueError(f"{item.source} cannot be fetched ({cause}): {consent}{item.by_hand}") from None
        yield f"fetched   {item.path}"


def _download(item: Ingredient) -> None:
    if item.hub:
        from huggingface_hub import snapshot_download

        snapshot_download(item.source, repo_type=item.hub, local_dir=item.path)
        return
    from urllib.request import urlopen

    part = item.path.with_name(item.path.name + ".part")
    with urlopen(item.source, timeout=60) as answer, part.open("wb") as file:
        shutil.copyfileobj(answer, file)
    part.replace(item.path)
