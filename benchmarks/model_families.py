"""Models of every family of transformers that generates text, small enough for a processor: their configurations.

tiny("gemma4")              configuration with about 200,000 parameters, two layers of each kind
FAMILIES                    all model types of AutoModelForCausalLM
"""

import re
from typing import Any

from transformers import CONFIG_MAPPING, PretrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

FAMILIES = tuple(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
VOCABULARY, WIDTH, LAYERS, HEADS, WINDOW = 260, 64, 4, 4, 4


def _each(names: str, value: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), value)


SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    **_each("hidden_size n_embd d_model dim embed_dim model_dim embedding_size emb_dim word_embed_proj_dim", WIDTH),
    **_each("num_hidden_layers n_layer num_layers n_layers encoder_layers decoder_layers", LAYERS),
    **_each("num_decoder_layers num_encoder_layers", LAYERS),
    **_each("num_attention_heads n_head num_heads n_heads attention_heads", HEADS),
    **_each("encoder_attention_heads decoder_attention_heads num_encoder_attention_heads", HEADS),
    **_each("num_decoder_attention_heads", HEADS),
    **_each("num_key_value_heads num_kv_heads multi_query_group_num", 2),
    **_each("intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim n_inner inner_dim dff", 128),
    **_each("ffn_hidden_size d_ff", 128),
    **_each("moe_intermediate_size shared_expert_intermediate_size expert_ffn_hidden_size ffn_size", 32),
    **_each("moe_shared_expert_intermediate_size shared_intermediate_size intermediate_size_mlp", 32),
    **_each("max_position_embeddings n_positions max_seq_len n_ctx max_sequence_length context_length", 64),
    **_each("max_target_positions max_source_positions", 64),
    **_each("num_experts num_local_experts n_routed_experts moe_num_experts", 4),
    **_each("num_experts_per_tok num_experts_per_token moe_topk moe_k n_group topk_group", 2),
    **_each("sliding_window attention_window local_window_size attention_chunk_size", WINDOW),
    **_each("q_lora_rank kv_lora_rank head_dim v_head_dim d_kv attention_head_dim", 16),
    **_each("qk_nope_head_dim qk_rope_head_dim", 8),
    **_each("linear_key_head_dim linear_value_head_dim", 8),
    **_each("linear_num_key_heads linear_num_value_heads", 2),
    **_each("vocab_size_per_layer_input", VOCABULARY),
    **_each("pad_token_id", 0),
    **_each("eos_token_id", 1),
    **_each("bos_token_id decoder_start_token_id sep_token_id", 2),
}
"""Sizes by the names that families give them; a family takes those that its configuration has."""
FACTORS = {
    **_each("final_logit_softcapping logits_soft_cap", 5.0),
    **_each("logits_scaling logit_scale lm_head_multiplier output_multiplier logits_mup_width_multiplier", 0.3),
}
"""Factors and caps of logits, which a family has to use where its configuration has them."""
ONE_GROUP = _each("n_group topk_group", 1)
LATENT = ONE_GROUP | {
    "num_key_value_heads": 4,
    "head_dim": 8,
    "index_head_dim": 16,
    "index_n_heads": 2,
    "index_topk": 64,
}
"""Sizes of models whose keys and values come from a latent state."""
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_chunk_size": 8}
OTHERWISE: dict[str, dict[str, Any]] = {
    **_each("axk1 axk2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa longcat_flash minicpm3 youtu", LATENT),
    **_each("hunyuan_v1_dense hunyuan_v1_moe ministral mistral", {"head_dim": 16}),
    **_each("codegen gptj", {"rotary_dim": 8}),
    "kimi_linear": LATENT | {"linear_head_dim": 16, "linear_num_heads": 4},
    "cpmant": {"dim_head": 16, "dim_ff": 128, "prompt_types": 2, "prompt_length": 2, "segment_types": 2},
    **_each("bamba granitemoehybrid", MAMBA),
    "falcon_h1": MAMBA | {"mamba_d_ssm": 128},
    "doge": {"keep_window_size": 64},
    "dots1": {**ONE_GROUP, "n_shared_experts": 1, "n_routed_experts": 4, "num_experts_per_tok": 2},
    "gemma3n_text": {
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 0,
        "hidden_size_per_layer_input": 16,
        "laurel_rank": 8,
        "activation_sparsity_pattern": [0.0] * LAYERS,
        "intermediate_size": [128] * LAYERS,
    },
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "window_size": WINDOW},
    "inkling_text": {"swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 16, "d_rel": 4},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "mamba2": {"num_heads": 8, "head_dim": 16, "n_groups": 2, "state_size": 16, "chunk_size": 8},
    "nemotron": {"num_key_value_heads": 2},
    "qwen4_exp_text": {"indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 16, "indexer_budget": 64}
    | {"indexer_compress_ratio": 2, "hc_lowrank": 16, "ple_embed_dim": 64, "ngram_vocab_size_base": 64},
    "roc_bert": _each("pronunciation_embed_dim shape_embed_dim pronunciation_vocab_size shape_vocab_size", 64),
    "zamba": {"num_hidden_layers": 8, "attn_layer_period": 2, "attn_layer_offset": 1, "attention_head_dim": 32}
    | {"attention_hidden_size": 128, "mamba_dt_rank": 4},
    "zamba2": {"layers_block_type": ["mamba", "hybrid"] * 2, "n_mamba_heads": 8, "mamba_d_state": 16}
    | {"num_key_value_heads": 4, "num_query_groups": 4, "kv_channels": 16, "adapter_rank": 8},
    "zaya": {"num_experts_per_tok": 1},
    "deepseek_v2": LATENT | {"num_experts_per_tok": 2},
    "reformer": {"is_decoder": True, "axial_pos_shape": [8, 8], "axial_pos_embds_dim": [32, 32], "num_buckets": 4}
    | {"attn_layers": ["local", "lsh"] * 2, "attention_head_size": 16, "feed_forward_size": 128}
    | _each("local_attn_chunk_length lsh_attn_chunk_length", 4),
    **_each("bert-generation xmod", {"is_decoder": True}),
}
"""Sizes that a family needs besides or instead."""


WIDTHS = re.compile(
    r"(?!vocab|num_|n_(?!embd|inner)).*(hidden_size|dim|embd|d_model|embed|inter|ffn|d_ff|inner|rank|d_kv)"
)
"""Names of widths, which are doubled for engines that need wider heads."""


def tiny(name: str, wide: bool = False) -> PretrainedConfig:
    """Return a configuration of the family `name` with small sizes; of encoders too, as far as they follow them.

    wide: twice the widths, so that heads have 32 numbers.
    """
    kind = CONFIG_MAPPING[name]
    default = kind()
    parts = {key: getattr(default, key) for key in kind.sub_configs if getattr(default, key, None) is not None}
    inner = {
        key: sizes_of(part) | OTHERWISE.get(part.model_type, {}) | {"model_type": part.model_type}
        for key, part in parts.items()
        if isinstance(part, PretrainedConfig)
    }
    sizes = sizes_of(default) | OTHERWISE.get(name, {}) | inner
    return kind(**widened(sizes) if wide else sizes)


def widened(sizes: dict[str, Any]) -> dict[str, Any]:
    """Return sizes with the widths doubled, also of parts."""
    found = dict(sizes)
    for key, value in sizes.items():
        if isinstance(value, dict):
            found[key] = widened(value)
        elif WIDTHS.match(key) and type(value) in (int, list):
            found[key] = [2 * x for x in value] if isinstance(value, list) else 2 * value
    return found


def sizes_of(config: PretrainedConfig) -> dict[str, Any]:
    """Return the sizes that a configuration has, as small ones."""
    known, other = config.to_dict(), type(config).attribute_map
    plain = {name: value for name, value in SIZES.items() if type(known.get(name)) is int}
    renamed = {other[name]: value for name, value in SIZES.items() if type(known.get(other.get(name))) is int}
    return plain | renamed | {name: value for name, value in FACTORS.items() if name in known}
