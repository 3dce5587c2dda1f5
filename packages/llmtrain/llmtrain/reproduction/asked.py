"""Flags of a command line that concern a recipe: which one, on which GPUs, and where its model and data are."""

from dataclasses import dataclass

from entrostat.settings.commandline import Arguments

from ..recipes.recipe import Recipe, get_recipe
from .ingredients import MODELS, data_folder

NODE = 8
"""GPUs of a node."""


@dataclass(frozen=True)
class Asked:
    """Flags of a command line that concern the recipe, not the trainer."""

    recipe: Recipe
    gpus: int
    gpu: str | None
    shrink: bool
    data_dir: str
    models_dir: str
    rest: list[str]
    """Remaining arguments."""


def is_recipe(args: list[str]) -> bool:
    """Return True if a command line names a recipe."""
    return any(item.partition("=")[0] == "--recipe" for item in args)


def read_asked(args: list[str], prog: str) -> Asked:
    """Return the flags of a command line that concern the recipe."""
    first = Arguments(prog=prog, add_help=False)
    first.add_argument("--recipe", required=True)
    first.add_argument("--gpus", type=int)
    first.add_argument("--nodes", type=int)
    first.add_argument("--gpu")
    first.add_argument("--shrink", action="store_true")
    first.add_argument("--data-dir", default=data_folder())
    first.add_argument("--models-dir", default=MODELS)
    given, rest = first.parse_known_args(args)
    recipe = get_recipe(given.recipe)
    if given.gpus and given.nodes:
        raise ValueError(f"{prog}: --nodes {given.nodes} is --gpus {NODE * given.nodes}: give one of them")
    gpus = given.gpus or NODE * (given.nodes or 0) or recipe.gpus
    if gpus < 1:
        raise ValueError(f"{prog}: --gpus must be at least 1; got {gpus}")
    return Asked(recipe, gpus, given.gpu, given.shrink, given.data_dir, given.models_dir, rest)
