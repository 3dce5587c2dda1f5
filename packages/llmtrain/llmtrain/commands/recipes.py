"""`llmtrain recipes` on the command line: published runs, their settings with sources, and what they need."""

import shutil
import sys
from functools import cache

from entrostat.settings.commandline import Arguments
from entrostat.settings.commandline_help import fold, tell

from ..plan.cost import RunPlan, make_plan
from ..plan.plan_presets import place
from ..recipes.recipe import KINDS, Recipe, Value, get_recipe, names
from ..reproduction.ingredients import MODELS, data, data_folder, fetch, model


@cache
def plan_of(name: str) -> RunPlan:
    """Return the plan of a recipe on its own number of GPUs."""
    return make_plan(place(get_recipe(name)).config)


def hours_in_words(recipe: Recipe) -> str:
    """Return the estimated GPU-hours of a recipe on its GPUs."""
    plan = plan_of(recipe.name)
    return f"{plan.gpu_hours:,.0f} on {plan.config.gpu}"


PROG = "llmtrain recipes"
PIPED = 500
"""Columns for a table that other programs read: as many as it needs."""
ABOUT = """\
Published runs as recipes; `llmtrain train --recipe NAME` trains one.

  llmtrain recipes                                  all of them
  llmtrain recipes steer 7b                         those whose line holds all the words
  llmtrain recipes show steer/qwen2.5-math-7b       every setting, and its source
  llmtrain recipes page > docs/recipes.md           all of them as a page
  llmtrain recipes fetch steer/qwen2.5-math-7b --dry-run     what must be downloaded, and where from
  llmtrain plan --recipe steer/qwen2.5-math-7b --gpus 8      memory, time and cost
  llmtrain train --recipe steer/qwen2.5-math-7b --shrink     a small form of it on this machine
"""


def main(args: list[str]) -> int:
    """List published runs, show their settings with sources, or fetch what they need."""
    actions = {"list": list_recipes, "show": show, "page": print_page, "fetch": fetch_recipe}
    if args and args[0] in ("-h", "--help"):
        print(fold(ABOUT))
        return 0
    return actions[args[0]](args[1:]) if args and args[0] in actions else list_recipes(args)


def list_recipes(args: list[str]) -> int:
    """Print a line for each recipe that holds all the words; returns the exit code."""
    parser = Arguments(prog=PROG, description=list_recipes.__doc__)
    parser.add_argument("words", nargs="*", help="words that a line must hold")
    words = [word.lower() for word in parser.parse_args(args).words]
    rows = [line(get_recipe(name)) for name in names()]
    kept = [row for row in rows if all(word in " ".join(row).lower() for word in words)]
    if not kept:
        raise ValueError(
            f"{PROG}: no recipe holds {' and '.join(words)}; {PROG} lists all of them, and show, page and fetch do more"
        )
    kept = [(*row, hours_in_words(get_recipe(row[0]))) for row in kept]
    head = ("recipe", "method", "model", "data", "GPUs", "GPU-hours, estimated")
    widths = [max(len(row[i]) for row in [head, *kept]) for i in range(len(head))]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in [head, *kept]]
    if sys.stdout.isatty() and len(lines[0]) > shutil.get_terminal_size().columns:
        lines = [
            f"{name:{widths[0]}}  {gpus} GPUs, {hours}\n    {method}; {model}; {trained}"
            for name, method, model, trained, gpus, hours in kept
        ]
    for row in lines:
        tell(row.rstrip())
    return 0


def line(recipe: Recipe) -> tuple[str, ...]:
    """Return name, method, model, data and GPUs of a recipe."""
    trained = ", ".join(recipe.value("data.train_files"))
    return recipe.name, recipe.about, recipe.model.rpartition("/")[2], trained, str(recipe.gpus)


def show(args: list[str]) -> int:
    """Print every setting of a recipe with its source; returns the exit code."""
    parser = Arguments(prog=f"{PROG} show", description=show.__doc__)
    parser.add_argument("name")
    recipe = get_recipe(parser.parse_args(args).name)
    print(f"{recipe.name}: {recipe.about}\n{recipe.paper}\n")
    tables = {"settings": recipe.values, "stated, without a setting here": recipe.stated_only}
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    console = console if console.is_terminal else Console(width=PIPED)
    for title, values in tables.items():
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        for key, value in values.items():
            grid.add_row(f"  {key}", escape(in_words(value.value)), escape(value.source))
        console.print(title, grid, "", sep="\n", highlight=False)
    if recipe.prepare:
        print("\n  ".join(["in this order", *commands(recipe)]))
        print()
    tell("sources: " + "; ".join(f"{kind}, {words}" for kind, words in KINDS.items()))
    return 0


def commands(recipe: Recipe) -> list[str]:
    """Return the commands that prepare a recipe and train it, with the usual folders and the recipe's own settings."""
    values = {key: value.value for key, value in recipe.values.items()}
    return [step.format(name=recipe.name, data=data_folder(), models=MODELS, values=values) for step in recipe.prepare]


COLUMNS: dict[str, tuple[str, ...]] = {
    "prompts × group": ("rollout.prompts", "rollout.n"),
    "mini-batch": ("optim.mini_batch_size",),
    "learning rate": ("optim.lr", "optim.lr_schedule"),
    "prompt + response tokens": ("data.max_prompt_length", "rollout.max_new_tokens"),
    "T": ("rollout.temperature",),
    "steps": ("steps",),
}
"""Columns of the page, and the settings that they show."""
MARKS = {"paper": "", "script": "ˢ", "verl": "ᵛ", "ours": "°"}
"""Marks of the kinds of sources on the page."""
HEAD = """# Recipes

Published runs as files: `llmtrain train --recipe NAME` trains one, `llmtrain recipes show NAME` names the source of
every setting, and the commands before it if it needs any. A number without a mark is stated in the paper; ˢ marks the
authors' script, ᵛ a default of verl, ° our choice where nothing is stated. Written by
`llmtrain recipes page > docs/recipes.md`.
"""


def print_page(args: list[str]) -> int:
    """Print all recipes as a Markdown page; returns the exit code."""
    Arguments(prog=f"{PROG} page", description=print_page.__doc__).parse_args(args)
    print(page(), end="")
    return 0


def page() -> str:
    """Return all recipes as a Markdown page: for each paper a table with the numbers of its runs."""
    recipes = [get_recipe(name) for name in names()]
    parts = [HEAD]
    for paper in dict.fromkeys(recipe.paper for recipe in recipes):
        rows = [row(recipe) for recipe in recipes if recipe.paper == paper]
        head = ("recipe", "method", "controller", "model", "training data", *COLUMNS)
        lines = [" | ".join(cells) for cells in (head, ["---"] * len(head), *rows)]
        parts.append("\n".join([f"## {paper}", "", *(f"| {line} |" for line in lines), ""]))
    return "\n".join(parts)


def row(recipe: Recipe) -> tuple[str, ...]:
    """Return the cells of a recipe on the page."""
    args = {key.rpartition(".")[2]: value for key, value in recipe.values.items() if key.startswith("controller_args.")}
    args |= {"target": recipe.values["target"]} if "target" in recipe.values else {}
    told = ", ".join(f"{key} {marked(value)}" for key, value in args.items())
    controller = f"`{recipe.value('controller')}`{f' ({told})' * bool(told)}"
    numbers = (
        " × ".join(marked(recipe.values[key]) for key in keys if key in recipe.values)
        if title == "prompts × group"
        else ", ".join(marked(recipe.values[key]) for key in keys if key in recipe.values)
        for title, keys in COLUMNS.items()
    )
    trained = ", ".join(recipe.value("data.train_files"))
    return f"`{recipe.name}`", recipe.about, controller, recipe.model.rpartition("/")[2], trained, *numbers


def marked(value: Value) -> str:
    """Return a value with the mark of its source."""
    return f"{in_words(value.value)}{MARKS[value.kind]}"


def in_words(value: object) -> str:
    """Return a value in words: lists with commas."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def fetch_recipe(args: list[str]) -> int:
    """Download the model and the data sets of a recipe that are missing, or say which; returns the exit code."""
    parser = Arguments(prog=f"{PROG} fetch", description=fetch_recipe.__doc__)
    parser.add_argument("name")
    parser.add_argument("--dry-run", action="store_true", help="print what would be downloaded, and where from")
    parser.add_argument("--data-dir", default=data_folder(), help="folder of the data sets")
    parser.add_argument("--models-dir", default=MODELS, help="folder of the models")
    given = parser.parse_args(args)
    recipe = get_recipe(given.name)
    items = [model(recipe, given.models_dir), *data(recipe, given.data_dir, given.models_dir).values()]
    if not given.dry_run:
        for said in fetch(items):
            print(said, flush=True)
        return 0
    for item in items:
        words = (item.size, "asks for consent to its licence" * item.gated, item.note)
        more = "; ".join(word for word in words if word)
        how = "by" if item.made else "own:" if item.own else "from"
        tell(f"{'there' if item.there else 'missing':8} {item.path}  {how} {item.source}{f' ({more})' * bool(more)}")
    missing = [item for item in items if not item.there]
    made, own = sum(item.made for item in missing), sum(item.own for item in missing)
    then = f", then {made} to make by the commands above" * bool(made) + f", and {own} of your own" * bool(own)
    command = f": llmtrain recipes fetch {recipe.name}" * bool(missing)
    print(f"{len(missing) - made - own} to download{command}{then}")
    return 0
