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
SOURCES = {"hub": "dataset", "url": "", "made": "made"}
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
    """Name on the hub, address, or the command that makes it."""
    hub: str
    """Kind of repository on the hub, model or dataset; empty for a file with an address, made for one to be made."""
    size: str = ""
    note: str = ""
    """Caution about its rows or its address; empty for none."""

    @property
    def there(self) -> bool:
        """True if it lies in its place."""
        return (self.path / "config.json").is_file() if self.hub == "model" else self.path.exists()

    @property
    def by_hand(self) -> str:
        """Command that gets it on a machine with a network."""
        kind = " --repo-type dataset" * (self.hub == "dataset")
        return {
            "made": f"run `{self.source}` in {self.path.parent}",
            "": f"run `curl -L -o {self.path} {self.source}` where there is a network",
        }.get(self.hub, f"run `hf download {self.source}{kind} --local-dir {self.path}` where there is a network")

    @property
    def gated(self) -> bool:
        """True if its owner asks for consent to a licence."""
        return self.hub == "model" and self.source.partition("/")[0] in GATED


def model(recipe: Recipe, folder: str = MODELS) -> Ingredient:
    """Return the model of a recipe: in `folder`, or in the hub's cache if it is there only."""
    name = recipe.model.rpartition("/")[2]
    path = Path(folder) / name
    if not (path / "config.json").is_file() and (cached := _cached(recipe.model)):
        path = cached
    size = BF16 * get_architecture(name).params / 1e9
    return Ingredient(name, path, recipe.model, "model", f"about {size:,.0f} GB")


def _cached(repository: str) -> Path | None:
    """Return the snapshot of a model in the hub's cache, None if there is none."""
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    found = try_to_load_from_cache(repository, "config.json")
    return Path(found).parent if isinstance(found, str) else None


def data(recipe: Recipe, folder: str) -> dict[str, Ingredient]:
    """Return the data sets of a recipe by name, in `folder`."""
    found = {}
    for name in dict.fromkeys(recipe.data_sets):
        entry = data_sets()[name]
        kind = next(kind for kind in SOURCES if kind in entry)
        path = Path(folder) / entry["file"]
        found[name] = Ingredient(name, path, entry[kind], SOURCES[kind], note=entry.get("note", ""))
    return found


def check_data(recipe: Recipe, folder: str) -> None:
    """Raise ValueError with the command that fetches them if data sets are missing."""
    gone = [item.path.name for item in data(recipe, folder).values() if not item.there]
    if gone:
        raise ValueError(
            f"{folder} lacks {', '.join(gone)} of recipe {recipe.name}: run `llmtrain recipes fetch {recipe.name} "
            f"--data-dir {folder}`, or name their folder with --data-dir"
        )


def check_model(recipe: Recipe, folder: str) -> Path:
    """Return the folder of a recipe's model. Raise ValueError with the command that fetches it if it is missing."""
    found = model(recipe, folder)
    if not found.there:
        consent = f"accept its licence at https://huggingface.co/{found.source}, `hf auth login`, then " * found.gated
        raise ValueError(
            f"model {found.source} of recipe {recipe.name} is not in {folder}: {consent}"
            f"`llmtrain recipes fetch {recipe.name}`, or name its folder with --model.path"
        )
    return found.path


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
    """Download what is missing, and yield a line for each item. Raise ValueError in one line if one fails."""
    for item in items:
        if item.there:
            yield f"there     {item.path}"
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
    if item.hub == "made":
        raise ValueError("it is made from another file")
    if item.hub:
        from huggingface_hub import snapshot_download

        snapshot_download(item.source, repo_type=item.hub, local_dir=item.path)
        return
    from urllib.request import urlopen

    part = item.path.with_name(item.path.name + ".part")
    with urlopen(item.source, timeout=60) as answer, part.open("wb") as file:
        shutil.copyfileobj(answer, file)
    part.replace(item.path)
