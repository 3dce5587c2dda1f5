"""Parameter counts: by hand, and those of transformers' own models."""

import json

import pytest

from llmtrain.plan.architecture import MODELS, get_architecture, read_config

PUBLISHED = {  # billions, from the model cards; without the embedding where the card says so
    "Qwen2.5-Math-7B": (7.61, 6.53),
    "Qwen3-8B-Base": (8.2, 6.95),
    "OpenReasoning-Nemotron-1.5B": (1.54, 1.31),
    "Qwen2.5-32B": (32.5, 31.0),
    "Qwen2.5-14B": (14.7, 13.1),
    "Qwen2.5-3B": (3.09, 2.77),
    "Qwen2.5-0.5B": (0.49, 0.36),
    "Qwen3-4B-Base": (4.0, 3.6),
}


def test_qwen2_5_7b_by_hand():
    attention = 3584 * 3584 + 2 * 3584 * 512 + 3584 * 3584  # q, k and v, o
    bias = 3584 + 2 * 512
    mlp = 3 * 3584 * 18944
    norms = 2 * 3584
    whole = 28 * (attention + bias + mlp + norms) + 3584 + 2 * 152064 * 3584
    assert get_architecture("Qwen2.5-Math-7B").params == whole == 7_615_616_512


def test_qwen3_8b_by_hand():
    attention = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 2 * 128  # with the norms of queries and keys
    whole = 36 * (attention + 3 * 4096 * 12288 + 2 * 4096) + 4096 + 2 * 151936 * 4096
    assert get_architecture("Qwen3-8B-Base").params == whole == 8_190_735_360


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name):
    model = get_architecture(name)
    published, without_embedding = PUBLISHED[name]
    assert model.params == pytest.approx(published * 1e9, rel=0.01)  # cards round, 32.76 to 32.5
    assert model.body_matmul == pytest.approx(without_embedding * 1e9, rel=0.01)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_as_in_transformers(name):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    model = MODELS[name]
    with torch.device("meta"):
        made = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(
                model.family,
                hidden_size=model.hidden,
                num_hidden_layers=model.layers,
                num_attention_heads=model.heads,
                num_key_value_heads=model.kv_heads,
                head_dim=model.head_dim,
                intermediate_size=model.intermediate,
                vocab_size=model.vocab,
                tie_word_embeddings=model.tied,
            )
        )
    assert sum(p.numel() for p in made.parameters()) == model.params


def test_kv_cache_of_a_token():
    model = get_architecture("Qwen3-8B-Base")
    assert model.kv_bytes() == 2 * 36 * 8 * 128 * 2  # keys and values, bf16
    assert model.kv_bytes(4) == model.kv_bytes() / 4
    assert model.kv_bytes(16) == model.kv_bytes(8), "more GPUs than KV heads hold copies"


def test_names():
    assert get_architecture("qwen/qwen3-8b-base").name == "Qwen3-8B-Base"
    with pytest.raises(ValueError, match=r"'gpt-5'; .*Qwen3-8B-Base.*config\.json"):
        get_architecture("gpt-5")


SIZES = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}


def test_a_config_of_ones_own(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SIZES))
    model = get_architecture(str(tmp_path))
    assert model.params == 8_030_261_248  # Llama-3.1-8B
    assert get_architecture(str(tmp_path / "config.json")) == model


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"model_type": "qwen3_moe"}, "'qwen3_moe'; .*qwen2"),
        ({"model_type": ["llama"]}, "type"),
        ({"vocab_size": None}, "vocab_size .*got None"),
        ({"num_key_value_heads": "8"}, "num_key_value_heads .*got '8'"),
        ({"num_key_value_heads": -3}, "num_key_value_heads .*got -3"),
        ({"num_key_value_heads": 5}, "num_attention_heads 32 .*multiple"),
        ({"head_dim": 0.5}, "head_dim .*got 0.5"),
        ({"hidden_size": 8}, "head_dim .*got 0"),
        ({"num_hidden_layers": True}, "num_hidden_layers .*got True"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings .*true or false"),
        ({"rope_scaling": "yarn"}, "rope_scaling .*got 'yarn'"),
        ({"rope_scaling": {"factor": "4"}}, "factor of rope_scaling"),
        ({"rope_scaling": {"factor": float("nan")}}, "factor of rope_scaling"),
        ("{", "not JSON"),
        ("[]", "type None"),
        ('{"model_type": "Modèle"}', "UTF-8"),
    ],
)
def test_bad_configs(tmp_path, change, names):
    content = change if isinstance(change, str) else json.dumps(SIZES | change)
    (tmp_path / "config.json").write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match=f"^{tmp_path}.*{names}"):
        read_config(tmp_path / "config.json")


@pytest.mark.parametrize(
    ("change", "window"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, 4096),
        ({"model_type": "mistral"}, 4096),
        ({"model_type": "mistral", "sliding_window": None}, None),
        ({"model_type": "mistral", "sliding_window": 131072}, None),
        ({"model_type": "qwen2", "sliding_window": 8192}, None),
        ({"model_type": "qwen2", "sliding_window": 8192, "use_sliding_window": False}, None),
        ({"model_type": "qwen2", "sliding_window": 8192, "use_sliding_window": True}, 8192),
        ({"model_type": "qwen3", "sliding_window": None, "use_sliding_window": True}, None),
        ({"model_type": "llama", "sliding_window": 4096}, None),
    ],
)
def test_sliding_windows_are_refused_where_transformers_has_one(tmp_path, change, window):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SIZES | change))
    if window is None:
        assert read_config(path).max_positions == 131072
    else:
        with pytest.raises(ValueError, match=f"{path}: .*{window:,} tokens"):
            read_config(path)


@pytest.mark.parametrize(
    "rope",
    [
        {},
        {"rope_scaling": None},
        {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
        {"rope_scaling": {"type": "yarn", "factor": 4.0}},
        {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 2048}},
        {"rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 10000.0}},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
        {"rope_scaling": {"type": "dynamic", "factor": 0.5}},
    ],
)
def test_positions_are_the_trainers(tmp_path, rope):
    from llmtrain.training.check import positions

    (tmp_path / "config.json").write_text(json.dumps(SIZES | {"max_position_embeddings": 32768} | rope))
    assert get_architecture(str(tmp_path)).max_positions == positions("model.path", tmp_path)


def test_yarn_lengthens_sequences(tmp_path):
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    sizes = SIZES | {"max_position_embeddings": 32768, "rope_scaling": yarn}
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    assert get_architecture(str(tmp_path)).max_positions == 131072


def test_a_folder_without_config(tmp_path):
    with pytest.raises(ValueError, match=r"contains no config\.json"):
        get_architecture(str(tmp_path))
