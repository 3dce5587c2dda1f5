import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import entrostat
from entrostat.settings import installation
from entrostat.settings.commandline import one_line_errors

PACKAGE = Path(entrostat.__file__).parent


def test_in_a_checkout():
    assert installation.checkout() == PACKAGE.parents[2]
    assert installation.install_command("train", "ray") == "pip install -c constraints.txt -e '.[train,ray]'"
    remedy = installation.install_command("train")
    assert installation.missing("scipy.cluster") == f"scipy is not installed: {remedy}"
    assert installation.missing("json") == ""


@pytest.fixture
def installed(tmp_path):
    """A copy of the package as pip lays it, inside the git repository of a project that only uses it."""
    project = tmp_path / "project"
    site = project / ".venv/lib/python3/site-packages"
    site.mkdir(parents=True)
    shutil.copytree(PACKAGE, site / "entrostat")
    (project / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "mine"],
    ):
        subprocess.run(["git", *words], cwd=project, check=True)
    return site


def test_a_wheel_inside_another_repository_has_no_revision_and_names_the_distribution(installed):
    code = "from entrostat import installation as i; print(i.checkout(), i.git_revision(), i.missing('peft'), sep='|')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=installed, env={"PYTHONPATH": str(installed)}, capture_output=True, text=True
    )
    assert done.stdout == "None|None|peft is not installed: pip install 'entrostat[lora]'\n"


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (
            '{"url": "file:///my%20wheels/entrostat-0.2.0-py3-none-any.whl"}',
            "/my wheels/entrostat-0.2.0-py3-none-any.whl",
        ),
        ('{"url": "file:///home/me/entrostat", "dir_info": {}}', "/home/me/entrostat"),
        ('{"url": "https://example.com/entrostat.zip"}', "entrostat"),
        ("not JSON", "entrostat"),
        (None, "entrostat"),
    ],
)
def test_a_hint_names_what_was_installed_from(installed, told, wanted):
    """pip notes it in direct_url.json; a package of an index has none."""
    about = installed / "entrostat-0.2.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: entrostat\nVersion: 0.2.0\n")
    if told is not None:
        (about / "direct_url.json").write_text(told)
    code = "from entrostat.settings.installation import install_command; print(install_command('sim'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=installed, env={"PYTHONPATH": str(installed)}, capture_output=True, text=True
    )
    assert done.stdout == f"pip install '{wanted}[sim]'\n", done.stderr


def test_a_missing_package_takes_one_line(capsys):
    @one_line_errors
    def main(args):
        raise ModuleNotFoundError("No module named 'transformers.models'", name="transformers.models")

    assert main([]) == 2
    assert capsys.readouterr().err == f"error: {installation.missing('transformers')}\n"


def test_a_missing_module_of_no_extra_keeps_its_traceback():
    @one_line_errors
    def main(args):
        raise ModuleNotFoundError("No module named 'mine'", name="mine")

    with pytest.raises(ModuleNotFoundError):
        main([])
