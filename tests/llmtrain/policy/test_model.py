"""The tiny policy, and its round trip through a folder."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from llmtrain.policy.model import build_tiny, load, save
from llmtrain.policy.tokenizer import build_char_tokenizer


def test_default_size_and_dtype():
    model = build_tiny(21)
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(0.86e6, rel=0.01)
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_weights_follow_the_seed_and_leave_the_global_rng_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    a, b, c = (build_tiny(21, hidden=16, layers=1, heads=2, kv_heads=1, intermediate=16, seed=s) for s in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(a.lm_head.weight, b.lm_head.weight)
    assert not torch.equal(a.lm_head.weight, c.lm_head.weight)


def test_save_and_load(tmp_path):
    tokenizer = build_char_tokenizer("0123")
    model = build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16)
    save(model, tokenizer, tmp_path)
    loaded, loaded_tokenizer = load(tmp_path)
    ids = torch.tensor([loaded_tokenizer("0123")["input_ids"]])
    assert torch.equal(loaded(ids).logits, model.eval()(ids).logits)
    assert loaded.generation_config.eos_token_id == tokenizer.eos_token_id


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what is mapped")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_in_the_dtype_of_the_folder_are_mapped(tmp_path, dtype):
    """So that processes of one machine hold them once."""
    tokenizer = build_char_tokenizer("0123")
    save(build_tiny(len(tokenizer), hidden=64, layers=1, heads=2, kv_heads=2, intermediate=64), tokenizer, tmp_path)
    weight = load(tmp_path, dtype=dtype)[0].model.layers[0].mlp.up_proj.weight
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    files = {tuple(int(x, 16) for x in fields[0].split("-")): fields[-1] for fields in maps}
    (file,) = [name for (start, end), name in files.items() if start <= weight.data_ptr() < end]
    assert (file == str(tmp_path / "model.safetensors")) == (dtype == torch.float32)


def test_products_are_those_of_weights_that_lie_elsewhere_in_their_file(tmp_path):
    """A single row is rounded by where its matrix begins: a checkpoint may hold that elsewhere than the first model."""
    tokenizer = build_char_tokenizer("0123")
    save(build_tiny(len(tokenizer)), tokenizer, tmp_path)
    ids, file, found = torch.tensor([[2]]), tmp_path / "model.safetensors", []
    (size,), rest = struct.unpack("<Q", file.read_bytes()[:8]), file.read_bytes()[8:]
    header = rest[:size].rstrip()
    for more in range(0, 64, 8):
        padded = header + b" " * (-(8 + len(header)) % 64 + more)
        file.write_bytes(struct.pack("<Q", len(padded)) + padded + rest[size:])
        found.append(load(tmp_path)[0](ids).logits)
    assert all(torch.equal(logits, found[0]) for logits in found)


SAVES = """
import os, sys, torch
from llmtrain.policy.model import build_tiny, save
from llmtrain.policy.tokenizer import build_char_tokenizer
torch.cuda.is_available = lambda: sys.argv[2] == "gpus"
save(build_tiny(8), build_char_tokenizer("0123"), sys.argv[1])
print(os.environ.get("DS_ACCELERATOR"))
"""


def saves(folder, machine):
    """What a process says that saves a model, and then what it tells DeepSpeed to use."""
    environment = {key: value for key, value in os.environ.items() if key != "DS_ACCELERATOR"}
    command = [sys.executable, "-c", SAVES, folder, machine]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout, done.stderr


@pytest.mark.slow
def test_nothing_is_said_while_a_model_is_saved(tmp_path):
    assert saves(tmp_path, "no gpus") == ("cpu\n", "")


@pytest.mark.slow
def test_where_there_are_gpus_deepspeed_is_not_kept_from_them(tmp_path):
    assert saves(tmp_path, "gpus")[0].endswith("None\n")


def test_on_a_gpu_attention_does_not_use_cudnn(tmp_path):
    """It prepares every new length anew."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    model = build_tiny(9, hidden=16, layers=1, heads=1, kv_heads=1, intermediate=16)
    save(model, build_char_tokenizer("0123456"), tmp_path)
    try:
        load(tmp_path)
        assert torch.backends.cuda.cudnn_sdp_enabled() == before
        load(tmp_path, device="cuda")
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


@pytest.mark.parametrize("umask", [0o022, 0o027])
def test_others_may_read_the_weights_if_they_may_read_the_rest(tmp_path, umask):
    before = os.umask(umask)
    try:
        tokenizer = build_char_tokenizer("0123")
        save(build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16), tokenizer, tmp_path)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o666 & ~umask}


def test_a_loaded_tokenizer_reads_as_the_saved_one_did(tmp_path):
    tokenizer = build_char_tokenizer("0123 =:")  # spaces and digits, which Qwen's own would read otherwise
    save(build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16), tokenizer, tmp_path)
    text = "1 23  0=12:"
    found = load(tmp_path)[1]
    assert found(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert found.decode(found(text)["input_ids"]) == text
    assert len(found) == len(tokenizer)


@pytest.mark.parametrize(("name", "size"), [("model.safetensors", 100), ("config.json", 100), ("config.json", None)])
def test_a_file_that_is_cut_off_or_missing_is_named_in_one_line(tmp_path, name, size):
    tokenizer = build_char_tokenizer("0123")
    save(build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16), tokenizer, tmp_path)
    if size is None:
        (tmp_path / name).unlink()
    else:
        os.truncate(tmp_path / name, size)
    for folder, names in ((tmp_path, name), (tmp_path / "nothing-here", "not exist")):
        with pytest.raises(ValueError, match=rf"^[^\n]*{folder} [^\n]*{names}[^\n]*$"):
            load(folder)


def test_head_counts_must_divide():
    with pytest.raises(ValueError, match=r"130 .*heads 4"):
        build_tiny(21, hidden=130, heads=4)
