"""Every block of every page is run, parsed by the program that it calls, or known as a picture or an output.

python, sh of tutorials          run: test_tutorials.py
python of other pages            run: test_examples.py
commands of ours                 run in small: test_commands.py; flags read here by the program's own parser
make, pip, kubectl, scripts      run in small: test_other_programs.py; targets and files that they name exist: here
verl's command                   run by verl up to its settings: test_other_programs.py, test_tutorials.py
yaml, toml                       read here
pictures of text, output         known by their signs, below
"""

import re
import shlex
import sys
import tomllib
from importlib import import_module

import pytest
from tests.docs.pages import BLOCKS, CALLS, COMMANDS, MAINS, ROOT, TUTORIALS, kind, our_words

from entrostat.settings.commandline import Arguments, parse_flags
from llmtrain.training.run import run_config

WORKED_ON = (parse_flags, run_config)
"""Functions after which a program starts to work, beside `Arguments.parse_args`."""
WITHOUT_FLAGS = ("check-controller", "completion", "docs")
"""Commands that take none; the tutorial on controllers and test_description.py run them."""


@pytest.mark.parametrize(("page", "language", "text"), BLOCKS, ids=[page.name for page, _, _ in BLOCKS])
def test_a_block_is_of_a_known_kind(page, language, text):
    assert kind(page, language, text)


def test_blocks_that_are_run_are_on_pages_that_tests_run():
    """Pages of test_examples.py and test_tutorials.py are those with such blocks."""
    of = {name: {page for page, *block in BLOCKS if kind(page, *block) == name} for name in ("run", "verl")}
    examples = [
        page for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if "```python\n" in page.read_text()
    ]
    inside_verl = ROOT / "docs/verl.md"  # run by test_integration_verl.py
    assert of["run"] == {*examples, *TUTORIALS, inside_verl}
    assert {page.name for page in of["verl"]} == {"README.md", "verl.md"}


class Parsed(Exception):
    """The flags have been read."""


def stopping(read):
    """Return a function that ends with Parsed where `read` returns."""

    def stop(*args, **settings):
        if read.__name__ != "run_config":  # it reads a run, which is not there
            read(*args, **settings)
        raise Parsed

    return stop


def put(new, old):
    """Put one function for another in every module that holds it."""
    for module in [*sys.modules.values()]:
        if getattr(module, "__dict__", {}).get(old.__name__) is old:
            setattr(module, old.__name__, new)


@pytest.fixture
def stops(monkeypatch, tmp_path, own_controllers):
    """Programs that end with Parsed when their flags are read, in a folder with the files that these name."""
    monkeypatch.setattr(Arguments, "parse_args", stopping(Arguments.parse_args))
    stands_for = {read: stopping(read) for read in WORKED_ON}
    for read, stop in stands_for.items():
        stop.__name__ = read.__name__
        put(stop, read)
    monkeypatch.chdir(tmp_path)
    for name in ("run.yaml", "mine.yaml"):
        (tmp_path / name).write_text("steps: 3\n")
    yield
    for read, stop in stands_for.items():
        put(read, stop)  # in modules that were first imported meanwhile, too


def is_read(line: str) -> bool:
    """Return True if a command's flags are read to the end."""
    program, *args = our_words(line)
    try:
        import_module(MAINS[program]).main(args)
    except Parsed:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(("page", "line"), CALLS, ids=[f"{name} {line}"[:70] for name, line in CALLS])
def test_the_flags_of_a_command_are_read(page, line, stops):
    if our_words(line)[1] in WITHOUT_FLAGS:
        return
    assert is_read(line.replace("plan --list", "plan"))  # the list is printed before flags are read


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["llmtrain train --controler entropic", "toybandit run --env", "llmtrain trane", "llmtrain resume"]
)
def test_a_wrong_command_is_noticed(line, stops):
    assert not is_read(line)


@pytest.mark.parametrize(("page", "line"), sorted({*COMMANDS} - {*CALLS}))
def test_what_another_command_names_exists(page, line):
    words = shlex.split(line)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:|^\.PHONY:.* {words[1]}( |$)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for file in re.findall(r"(?:examples|benchmarks|docs)/[\w./-]+", line):
        assert (ROOT / file).exists()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for names in re.findall(r"(?:\.|entrostat)\[([\w,]+)\]", line):
        assert set(names.split(",")) <= set(extras)


def test_data_are_read(tmp_path):
    """An environment, and an entry point of a plug-in; test_integration_prime_rl.py reads a custom loss."""
    from toybandit.environment_file import read_environment

    found = {page.name: (language, text) for page, language, text in BLOCKS if kind(page, language, text) == "data"}
    assert set(found) == {"simulator.md", "architecture.md", "claim.md", "prime_rl.md"}
    (tmp_path / "own.yaml").write_text(found["simulator.md"][1])
    assert read_environment(tmp_path / "own.yaml")
    (group,) = tomllib.loads(found["architecture.md"][1])["project"]["entry-points"]
    assert group == "entrostat.controllers"
