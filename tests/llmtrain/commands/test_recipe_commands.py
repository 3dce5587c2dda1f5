"""Commands that prepare and train a recipe: each is understood, and together they make the run of its settings."""

import re
import shlex

import pytest

from llmtrain.cli import main
from llmtrain.commands.recipes import commands
from llmtrain.recipes.recipe import data_sets, get_recipe, names
from llmtrain.reproduction.ingredients import data_folder

PREPARED = {
    command.replace(name, "RECIPE"): (name, i)
    for name in reversed(names())
    for i, command in enumerate(commands(get_recipe(name)))
}
"""Recipe and number of each command that prepares one; commands that differ by the recipe's name alone count as one."""


@pytest.mark.parametrize(("name", "number"), [pytest.param(*x, id=f"{x[0]} {x[1]}") for x in PREPARED.values()])
def test_commands_that_prepare_a_recipe_are_understood(name, number, capsys, tmp_path, monkeypatch):
    """In an empty folder each ends with what is missing, not with a flag that is none."""
    monkeypatch.chdir(tmp_path)
    command = commands(get_recipe(name))[number].replace(f"{data_folder()}/", f"{tmp_path}/")
    assert main(shlex.split(command.replace("DROPPED", "1e-4"))[1:]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.search("does not exist|is not a model folder|this machine has 0|is not a run", said)


def flags(command):
    """Return the values of each flag of a command."""
    found = {}
    for word in shlex.split(command):
        if word.startswith("--"):
            found[word] = values = []
        elif found:
            values.append(word)
    return found


@pytest.mark.parametrize("name", [name for name in names() if get_recipe(name).value("sft.steps")])
def test_commands_train_the_run_that_the_settings_describe(name):
    """EntroPIC, B.1: a warm-up, a filter of each training set by the model that it made, training on all of them."""
    recipe = get_recipe(name)
    first, *filters, last = map(flags, commands(recipe))
    between = [one for one in filters if "--recipe" in one]
    filters = [one for one in filters if "--method" in one]
    files = [f"{data_folder()}/{data_sets()[one]['file']}" for one in recipe.value("data.train_files")]
    assert [one["--data"] for one in filters] == [[file] for file in files]
    warm = first["--out"]
    for one in filters:
        assert one["--model"] == warm
        assert one["--temperature"] == [str(recipe.value("rollout.temperature"))]
        assert one["--max-new-tokens"] == [str(recipe.value("rollout.max_new_tokens"))]
        assert one["--max-prompt-length"] == [str(recipe.value("data.max_prompt_length"))]
        assert one["--without"] == ["true-false", "choice", "proof"]
    learnable = [one["--out"][0] for one in filters]
    trained = [*between, last]
    assert all(one["--data.train-files"] == learnable for one in trained)
    assert trained[0]["--model.path"] == warm
    assert last["--recipe"] == [name]
    assert first["--recipe"] == [name]
    for one in between:  # a run before it, from whose checkpoint it goes on
        assert last["--model.path"] == [f"{one['--out'][0]}/checkpoints/step-{int(one['--steps'][0]):06}"]
        assert get_recipe(one["--recipe"][0]).value("rollout.temperature") == recipe.value("rollout.temperature")
