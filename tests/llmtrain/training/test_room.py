"""Room for checkpoints is asked for before a run starts."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from llmtrain.settings.config import ModelConfig
from llmtrain.training.check import check
from llmtrain.training.room import bytes_of, check_room, checkpoint_bytes
from llmtrain.training.trainer import Trainer


@pytest.fixture(scope="module")
def trained(small, tmp_path_factory):
    """A run of two steps with a gradient in each."""
    out = tmp_path_factory.mktemp("runs") / "trained"
    never = replace(small.eval, every=0)
    config = replace(small, out=str(out), steps=2, save_every=2, controller="entropy_bonus", eval=never)
    Trainer(config, config.model.path).run()
    return config


def test_the_size_of_a_checkpoint_is_known_before(trained):
    (written,) = (Path(trained.out) / "checkpoints").iterdir()
    assert checkpoint_bytes(trained, Path(trained.model.path)) == pytest.approx(bytes_of(written), rel=0.2)


def test_a_model_in_16_bits_trains_in_32(small, tmp_path):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(small.model.path)
    for name in ("float32", "bfloat16"):
        model.to(getattr(__import__("torch"), name)).save_pretrained(tmp_path / name)
    sizes = [checkpoint_bytes(small, tmp_path / name) for name in ("float32", "bfloat16")]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


def test_a_run_without_room_for_its_checkpoints_is_refused(trained, monkeypatch):
    """Those that a run has written already need none."""
    there = Path(trained.out)
    each = checkpoint_bytes(trained, Path(trained.model.path))
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=2.5 * each))
    longer = replace(trained, out=str(there.parent / "other"), steps=9)
    said = rf"^{there.parent} has 0.0 GB free, and the run needs .* for 3 checkpoints of .* --checkpoint.keep-last"
    with pytest.raises(ValueError, match=said):
        check(longer)
    check_room(replace(longer, checkpoint=replace(longer.checkpoint, keep_last=1)))
    check_room(replace(longer, out=trained.out))
    check_room(replace(longer, model=ModelConfig()))
