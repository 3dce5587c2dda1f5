"""Every block of every page is run, parsed by the program that it calls, or known as a picture or an output.

python, sh of tutorials          run: test_tutorials.py
python of other pages            run: test_examples.py
commands of ours                 flags read here by the program's own parser, up to where it would start to work
make, pip, scripts               here: targets, extras and files that they name exist
verl's command                   read by verl: test_integration_verl.py, test_readme.py, test_tutorials.py
yaml, toml                       read here
pictures of text, output         known by their signs, below
"""

import re
import shlex
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from entrostat.commandline import Arguments

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")), *TUTORIALS]
BLOCK = re.compile(r"^```(\w*)(?: title=\"[^\"]*\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    ((?:llmtrain|toybandit|entrostat|python) .*)$", re.MULTILINE)
"""Commands of generated pages, which are indented."""
OURS = ("llmtrain", "toybandit", "entrostat", "entrostat-app")
OTHERS = ("make", "pip", "python", "torchrun", "sbatch", "kubectl", "examples/ray_job.sh", "export")
PICTURE = re.compile("[►│▼└]")
OUTPUT_OF_PLAN = ("$ llmtrain plan", "Qwen3-8B-Base on 64 H20")
"""Output on docs/plan.md, which test_plan.py compares with the program's."""
WORKED_ON = (
    "llmtrain.settings.presets.parse_flags",
    "llmtrain.commands.plan.parse_flags",
    "toybandit.verify.parse_flags",
    "toybandit.reproduce.command.parse_flags",
    "toybandit.sweep.command.parse_flags",
    "toybandit.run.parse_flags",
    "toybandit.leaderboard.command.parse_flags",
    "entrostat_app.publish.publish_command.parse_flags",
    "entrostat_app.launch.parse_flags",
    "llmtrain.commands.probe_entropy.run_config",
    "entrostat.commandline.Arguments.parse_args",
)
"""Functions after which a program starts to work."""
WITHOUT_FLAGS = ("check-controller", "docs")
"""Commands that take none; the tutorial on controllers and test_description.py run them."""
MAINS = {
    "llmtrain": "llmtrain.cli",
    "toybandit": "toybandit.cli",
    "entrostat": "entrostat_app.entrostat_command",
    "entrostat-app": "entrostat_app.launch",
}


def command_lines(text: str) -> list[str]:
    """Return the commands of a block, each in one line without what is said about it."""
    lines = re.sub(r" *\\\n +", " ", text).splitlines()
    return [re.split(r" {2,}| # ", line)[0].removeprefix(".venv/bin/") for line in lines if line.strip()]


def kind(page: Path, language: str, text: str) -> str:
    """Return the kind of a block; empty if it is none that is known."""
    if language == "python" or (language == "sh" and page in TUTORIALS):
        return "run"
    if language in ("yaml", "toml"):
        return "data"
    if "verl.trainer.main_ppo" in text:
        return "verl"
    if (language == "text" and page in TUTORIALS) or (page.name == "plan.md" and text.startswith(OUTPUT_OF_PLAN)):
        return "output"
    if PICTURE.search(text):
        return "picture"
    if all(line.split()[0] in OURS + OTHERS for line in command_lines(text)):
        return "commands"
    return ""


BLOCKS = [(page, language, text) for page in PAGES for language, text in BLOCK.findall(page.read_text())]
COMMANDS = [(page.name, line) for page in PAGES for line in INDENTED.findall(BLOCK.sub("", page.read_text()))]
COMMANDS += [
    (page.name, line)
    for page, language, text in BLOCKS
    if kind(page, language, text) == "commands"
    for line in command_lines(text)
]


def our_words(line: str) -> list[str]:
    """Return the words of a command from our program on, without dots that stand for more; empty if it calls none."""
    words = [word for word in shlex.split(line) if word != "..."]
    if words[0] == "torchrun":
        words = words[words.index("-m") + 1 :]
    if words[:3] == ["python", "-m", "entrostat"]:
        words = words[2:]
    for end in ("|", "&&", ">"):
        words = words[: words.index(end)] if end in words else words
    return words if words[0] in OURS else []


CALLS = sorted({(name, line) for name, line in COMMANDS if our_words(line)})


@pytest.mark.parametrize(("page", "language", "text"), BLOCKS, ids=[page.name for page, _, _ in BLOCKS])
def test_a_block_is_of_a_known_kind(page, language, text):
    assert kind(page, language, text)


def test_blocks_that_are_run_are_on_pages_that_tests_run():
    """Pages of test_examples.py and test_tutorials.py are those with such blocks."""
    of = {name: {page for page, *block in BLOCKS if kind(page, *block) == name} for name in ("run", "verl")}
    examples = [
        page for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if "```python\n" in page.read_text()
    ]
    assert of["run"] == {*examples, *TUTORIALS}
    assert {page.name for page in of["verl"]} == {"README.md", "verl.md"}


class Parsed(Exception):
    """The flags have been read."""


@pytest.fixture
def stops(monkeypatch, tmp_path, own_controllers):
    """Programs that end with Parsed when their flags are read, in a folder with the files that these name."""
    for name in WORKED_ON:
        home, _, attribute = name.rpartition(".")
        owner = Arguments if home.endswith("Arguments") else import_module(home)
        read = getattr(owner, attribute)

        def stop(*args, read=read, **settings):
            if read.__name__ != "run_config":  # of a run that is not there
                read(*args, **settings)
            raise Parsed

        monkeypatch.setattr(owner, attribute, stop)
    monkeypatch.chdir(tmp_path)
    for name in ("run.yaml", "mine.yaml"):
        (tmp_path / name).write_text("steps: 3\n")


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
    """An environment, an entry point of a plug-in, a grid of a sweep."""
    from toybandit.environment_file import read_environment

    found = {page.name: (language, text) for page, language, text in BLOCKS if kind(page, language, text) == "data"}
    assert set(found) == {"simulator.md", "architecture.md", "controller.md"}
    (tmp_path / "own.yaml").write_text(found["simulator.md"][1])
    assert read_environment(tmp_path / "own.yaml")
    (group,) = tomllib.loads(found["architecture.md"][1])["project"]["entry-points"]
    assert group == "entrostat.controllers"
    assert {"env", "controller", "target"} == set(yaml.safe_load(found["controller.md"][1]))
