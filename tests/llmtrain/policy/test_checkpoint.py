"""Checkpoints: a kill at any call that changes files leaves a whole one, and nothing that breaks the next save."""

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from llmtrain.policy import checkpoint, plain_state
from llmtrain.policy.checkpoint import checkpoints, latest, load_state, recover, save_checkpoint
from llmtrain.policy.engine import TorchEngine
from llmtrain.policy.model import load
from llmtrain.policy.policy import Policy
from llmtrain.process.ranks import Ranks

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir")


class KilledError(BaseException):
    """Stand-in for SIGKILL: no handler of errors sees it."""


class Layer:
    """Audit hook that ends the process, so to speak, before the n-th call that changes files below a folder."""

    def __init__(self) -> None:
        self.folder = ""
        self.left = -1
        self.calls = 0
        self.opened: Path | None = None
        """File that was last opened to be written."""
        sys.addaudithook(self.hook)

    def hook(self, event, args):
        if not self.folder or (event != "open" and event not in CHANGES):
            return
        writes = event != "open" or (isinstance(args[1], str) and set(args[1]) & set("wax+"))
        if not writes or (isinstance(args[0], str) and args[0].startswith("/") and not args[0].startswith(self.folder)):
            return
        self.tick()
        self.opened = Path(str(args[0])) if event == "open" else self.opened

    def tick(self):
        self.calls += 1
        if self.calls == self.left:
            self.folder = ""
            raise KilledError

    @contextmanager
    def killing(self, folder: Path, at: int):
        """Kill before the `at`-th change; 0 kills never, and counts."""
        self.folder, self.left, self.calls, self.opened = str(folder), at, 0, None
        try:
            yield
        finally:
            self.folder = ""


@pytest.fixture(scope="module")
def layer():
    return Layer()


@pytest.fixture
def save(monkeypatch, layer):
    """Saves a checkpoint whose files are small, through calls that the layer sees."""

    def write_model(model, tokenizer, folder, engine):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("model.safetensors", "config.json", "tokenizer.json"):
            with open(folder / name, "w") as file:
                file.write("0123456789" * 10)

    def write_tensors(tensors, path):
        with open(path, "wb") as file:
            file.write(b"".join(tensor.numpy().tobytes() for tensor in tensors.values()))

    def sync(file):
        layer.tick()

    monkeypatch.setattr(checkpoint, "save", write_model)
    monkeypatch.setattr(plain_state, "save_file", write_tensors)

    def read_tensors(path):
        return {"0": torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32)}

    monkeypatch.setattr(plain_state, "load_file", read_tensors)
    monkeypatch.setattr(checkpoint.os, "fsync", sync)
    models = {"": (SimpleNamespace(model=None), SimpleNamespace(ranks=Ranks(), save_shards=lambda folder: None))}

    def save(run, step, value):
        state = {"moments": torch.full((8,), float(value))}
        save_checkpoint(run, step, models, None, state, lambda: set(checkpoints(run)[-2:]))

    return save


def values(run) -> dict[int, float]:
    """Step and value of the checkpoints, all of which must load."""
    states = [load_state(path) for path in checkpoints(run)]
    return {state["step"]: float(state["moments"][0]) for state in states}


@pytest.mark.slow
@pytest.mark.parametrize("step", [3, 2], ids=["new", "replaced"])
def test_a_kill_at_any_call_leaves_a_whole_checkpoint(save, layer, tmp_path, step):
    first = tmp_path / "first"
    for old in (1, 2):
        save(first, old, old)
    counted = shutil.copytree(first, tmp_path / "count")
    with layer.killing(tmp_path, 0):
        save(counted, step, 9)
    calls = layer.calls
    assert calls > 15
    for at in range(1, calls + 1):
        for half in (False, True):
            run = Path(shutil.copytree(first, tmp_path / f"{at}-{half}"))
            with layer.killing(tmp_path, at), pytest.raises(KilledError):
                save(run, step, 9)
            if half and layer.opened and layer.opened.is_file():  # its content was being written
                content = layer.opened.read_bytes()
                layer.opened.write_bytes(content[: len(content) // 2])
            recover(run)
            newest = load_state(latest(run))
            known = {1: 1.0, 2: 2.0}
            assert float(newest["moments"][0]) in (known[2], 9.0), at
            assert newest["step"] >= 2
            for number, value in values(run).items():
                assert value in (known.get(number), 9.0)
            save(run, 3, 7)
            assert values(run) == {2: values(run)[2], 3: 7.0}
            assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["step-000002", "step-000003"]
            shutil.rmtree(run)


@pytest.fixture(scope="module")
def saved(small, tmp_path_factory):
    """A checkpoint of the small model in bf16."""
    model, tokenizer = load(small.model.path, dtype=torch.bfloat16)
    engine = TorchEngine(model, small.optim)
    run = tmp_path_factory.mktemp("run")
    save_checkpoint(run, 1, {"": (Policy(model), engine)}, tokenizer, {"engine": engine.state_dict()}, set)
    return model, latest(run)


def test_the_weights_are_the_only_file_that_ends_like_weights(saved):
    """vLLM would load any other as weights too."""
    _, path = saved
    assert [file.name for file in path.rglob("*.safetensors")] == ["model.safetensors"]
    assert not list(path.rglob("*.bin")) + list(path.rglob("*.pt"))


def test_weights_lie_once_in_a_checkpoint(saved):
    model, path = saved
    found = load_file(path / "model.safetensors")
    assert all(tensor.dtype == torch.bfloat16 for tensor in found.values())
    once = sum({p.data_ptr(): p.numel() * p.element_size() for p in model.parameters()}.values())
    size = sum(file.stat().st_size for file in path.rglob("*") if file.suffix in (".safetensors", ".tensors"))
    assert size < 1.3 * once
