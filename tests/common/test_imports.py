"""What importing pulls in: entrostat nothing heavy, configurations not even torch."""

import ast
import graphlib
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import entrostat

LIBRARY = Path(entrostat.__file__).parent
TRAINERS = {"integrations": {"torch", "transformers", "trl", "verl", "tensordict"}}
"""Packages that the modules of a folder import, where these are not only NumPy, torch and PyYAML."""
OF_PARTS = {"gymnasium", "matplotlib", "pyarrow", "PIL"}
"""Modules of the extra `sim`, which TRL and verl users do without."""
FOLDERS = ("packages/common", "packages/toybandit", "packages/llmtrain", "apps")
OURS = {"entrostat", "toybandit", "llmtrain", "entrostat_app"}
HEAVY = ("transformers", "ray", "deepspeed", "vllm", "streamlit", "tyro", "matplotlib")


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_entrostat_is_light():
    assert not modules_after(
        "import entrostat.settings.commandline, entrostat.logs.runlog, entrostat.logs.foreign.foreign_runs"
    ) & {
        "torch",
        "pyarrow",
        "pydantic",
        *HEAVY,
    }


def test_what_it_names_is_there():
    types = {"NotNegative", "Number", "Positive", "Share"}  # which have no names of their own
    names = sorted(set(entrostat.__all__) - types)
    code = f"import entrostat; print(*(f'{{name}}={{getattr(entrostat, name).__name__}}' for name in {names}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = dict(pair.split("=") for pair in done.stdout.split())
    assert {name: home.rpartition(".")[2] for name, home in found.items()} == {name: name for name in names}
    assert all(getattr(entrostat, name) is not None for name in types)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'entrostat' has no attribute 'mak'"):
        entrostat.mak  # noqa: B018


@pytest.mark.parametrize("module", ["llmtrain.settings.config", "llmtrain.tasks", "toybandit.config"])
def test_configurations_need_no_torch(module):
    assert not modules_after(f"import {module}") & {"torch", *HEAVY}


def test_a_configuration_is_read_without_pydantic():
    assert "pydantic" not in modules_after("import llmtrain.settings.config")


def test_modules_are_there_and_names_are_listed():
    code = "import entrostat; print(entrostat.registry.__name__, entrostat.surrogates.__name__, *dir(entrostat))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    registry, surrogates, *listed = done.stdout.split()
    assert (registry, surrogates) == ("entrostat.registry", "entrostat.surrogates")
    assert set(listed) >= set(entrostat.__all__)


def test_a_name_that_is_taken_twice_is_refused_with_both_places():
    """Also when it is taken before ours are imported."""
    code = (
        "from entrostat.registry import register; register('steer')(type('Mine', (), {})); from entrostat import make"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    twice = "ValueError: controller 'steer' is registered twice, in __main__ and in entrostat.controllers.steer\n"
    assert done.stderr.endswith(twice)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["registry", "by_name", "description"])
def test_every_controller_is_registered(module):
    code = f"from entrostat.{module} import *; import entrostat; print(*entrostat.list_controllers())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == entrostat.list_controllers()


OPTIONAL = {
    "cut_cross_entropy": "compared with in `llmtrain bench kernels`",
    "liger_kernel": "compared with in `llmtrain bench kernels`",
    "langdetect": "used by the verifier ifeval if it is installed",
    "prime_rl": "the trainer that calls the loss of its integration; not on PyPI",
}
OPTIONAL |= dict.fromkeys(
    ("closed_root", "denied_calls", "process_limits", "link_messages", "plain_data", "remote_objects", "tests_side"),
    "files of verifiers/ that the sandbox reads from its own folder",
)
"""Modules that are imported, and are no requirement; with the reason."""
DISTRIBUTIONS = {
    "PIL": "pillow",
    "antlr4": "antlr4-python3-runtime",
    "vl_convert": "vl-convert-python",
    "yaml": "pyyaml",
}
"""Distributions whose name is not the module's."""


def test_every_import_is_a_requirement():
    """Also those inside functions: what a module imports itself must not come by way of another package."""
    root = LIBRARY.parents[2]
    metadata = tomllib.loads((root / "pyproject.toml").read_text())
    extras, alone = metadata["project"]["optional-dependencies"], metadata["dependency-groups"]["no-deps"]
    lines = [*metadata["project"]["dependencies"], *alone, *(line for extra in extras.values() for line in extra)]
    required = {canonicalize_name(Requirement(line).name) for line in lines}
    trees = [
        ast.parse(file.read_text(encoding="utf-8")) for folder in FOLDERS for file in (root / folder).rglob("*.py")
    ]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    modules = {name.partition(".")[0] for name in names} - OURS - sys.stdlib_module_names
    assert "sympy" in modules
    assert OPTIONAL.keys() <= modules
    assert not {m for m in modules - OPTIONAL.keys() if canonicalize_name(DISTRIBUTIONS.get(m, m)) not in required}


def imported_at_once(file):
    """Return the packages that importing the module imports, without this one and those of Python."""
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names} - {"entrostat"} - sys.stdlib_module_names


def test_the_library_imports_numpy_torch_and_yaml_alone_and_the_integrations_their_trainer():
    found = {}
    for file in LIBRARY.rglob("*.py"):
        folder = file.parent.name if file.parent.name in TRAINERS else ""
        found.setdefault(folder, set()).update(imported_at_once(file))
    assert found == {"": {"numpy", "torch", "yaml"}, **TRAINERS}


def test_what_belongs_to_parts_is_required_by_the_extra_sim_alone():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    required, sim = (
        {Requirement(line).name for line in lines}
        for lines in (project["dependencies"], project["optional-dependencies"]["sim"])
    )
    assert sim == {"pillow" if name == "PIL" else name for name in OF_PARTS}
    assert not sim & required
    for extra in ("train", "app"):
        assert "entrostat[sim]" in project["optional-dependencies"][extra]


@pytest.mark.slow
def test_without_the_extra_the_library_works_and_the_simulator_names_it(tmp_path):
    code = f"""
import sys
sys.modules.update(dict.fromkeys({OF_PARTS}))  # as if not installed
import entrostat as es, toybandit, toybandit.cli, llmtrain.cli
es.make("clip_higher+steer"), es.get_advantage("grpo"), es.describe("steer")
toybandit.simulate(toybandit.Config(env="det", states=4, rollouts=2), [0])
sys.exit(toybandit.cli.main(["run", "--env", "det", "--states", "4", "--rollouts", "2", "--out", "run"]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("error: matplotlib is not installed: pip install ")
    assert "[sim]" in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize("package", ["entrostat", "toybandit", "llmtrain", "entrostat_app"])
def test_no_file_imports_itself_through_others(package):
    """Also not by an import inside a function; import-linter's contracts are about folders."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    graphlib.TopologicalSorter(imported).prepare()
