"""A finished run."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from llmtrain.training.trainer import Trainer


@pytest.fixture(scope="module")
def finished(small, tmp_path_factory) -> Path:
    """The folder of a run of two steps; not to be changed."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    Trainer(replace(small, out=str(out), steps=2, eval=replace(small.eval, every=0)), small.model.path).run()
    return out


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of it, whose config.yaml still names the other folder."""
    return Path(shutil.copytree(finished, tmp_path / "run"))
