"""No package runs text as code, unpickles or uses a shell: read from the syntax trees.

Programs in responses are run by verifiers/sandbox.py, which starts the interpreter anew for them; the file that runs
there is the only exception.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("packages/common", "packages/toybandit", "packages/llmtrain", "apps")
IN_SANDBOX = ROOT / "packages/llmtrain/llmtrain/verifiers/answer_link.py"
"""File that runs programs, and that no other file imports."""
CALLS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "marshal.loads", "marshal.load"),
    *("torch.load", "np.load", "numpy.load", "yaml.unsafe_load", "yaml.full_load", "joblib.load", "shelve.open"),
}
MODULES = {"pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib"}
SAFE = {"torch.load": "weights_only=True", "np.load": "allow_pickle=False", "numpy.load": "allow_pickle=False"}
"""Argument that makes a call safe."""


def faults(tree: ast.Module) -> list[str]:
    """Return line and name of every call and import that is not allowed."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
            found += [f"{node.lineno}: import {name}" for name in names if name.partition(".")[0] in MODULES]
        if isinstance(node, ast.Call):
            name, given = ast.unparse(node.func), {ast.unparse(keyword) for keyword in node.keywords}
            if name in CALLS and SAFE.get(name) not in given:
                found.append(f"{node.lineno}: {name}")
            found += [f"{node.lineno}: shell" for word in given if word.startswith("shell=") and word != "shell=False"]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_text_is_run_as_code(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    found = {str(path): faults(ast.parse(path.read_text(encoding="utf-8"))) for path in files if path != IN_SANDBOX}
    assert files
    assert not {path: wrong for path, wrong in found.items() if wrong}


def test_the_file_of_the_sandbox_is_imported_by_none():
    name, found = IN_SANDBOX.stem, []
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom) and name in ast.unparse(node):
                found.append(str(path))
    assert IN_SANDBOX.is_file()
    assert not found


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("eval('1')", "1: eval"),
        ("import pickle", "1: import pickle"),
        ("from pickle import loads", "1: import pickle"),
        ("subprocess.run('ls', shell=True)", "1: shell"),
        ("torch.load('x')", "1: torch.load"),
        ("torch.load('x', weights_only=False)", "1: torch.load"),
        ("os.system('ls')", "1: os.system"),
    ],
)
def test_what_is_not_allowed_is_found(code, fault):
    assert faults(ast.parse(code)) == [fault]


@pytest.mark.parametrize("code", ["model.eval()", "torch.load('x', weights_only=True)", "run('ls', shell=False)"])
def test_what_is_allowed_is_not_found(code):
    assert not faults(ast.parse(code))
