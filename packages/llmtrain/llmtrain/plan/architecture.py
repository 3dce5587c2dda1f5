"""A dense decoder-only transformer by numbers: grouped-query attention, SwiGLU, RMSNorm."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BF16 = 2
"""Bytes of a weight, an activation or an entry of the KV cache."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Sizes as in a model's config.json; parameter counts that follow from them."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool
    """Whether the output layer is the embedding."""
    attention_bias: bool
    """Whether queries, keys and values have a bias."""
    qk_norm: bool
    """Whether queries and keys are normalised per head."""
    max_positions: int
    """Longest sequence, prompt and response."""

    @property
    def q_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim

    @property
    def layer_matmul(self) -> int:
        """Parameters of one layer that multiply each token."""
        attention = self.hidden * (2 * self.q_width + 2 * self.kv_width)
        return attention + 3 * self.hidden * self.intermediate

    @property
    def layer_params(self) -> int:
        """All parameters of one layer."""
        bias = self.q_width + 2 * self.kv_width if self.attention_bias else 0
        return self.layer_matmul + bias + 2 * self.hidden + (2 * self.head_dim if self.qk_norm else 0)

    @property
    def body_matmul(self) -> int:
        """Parameters of all layers that multiply each token."""
        return self.layers * self.layer_matmul

    @property
    def head_params(self) -> int:
        """Parameters of the output layer; as many as the embedding has."""
        return self.vocab * self.hidden

    @property
    def params(self) -> int:
        """All parameters; a tied output layer counts once."""
        return self.layers * self.layer_params + self.hidden + self.head_params * (1 if self.tied else 2)

    @property
    def decode_params(self) -> int:
        """Parameters read for each decoded token: all but the rows of the embedding that are not looked up."""
        return self.params if self.tied else self.params - self.head_params

    def kv_bytes(self, tensor_parallel: int = 1) -> int:
        """Bytes of KV cache on a GPU for a token; KV heads are copied where there are more GPUs than heads."""
        return 2 * self.layers * max(self.kv_heads // tensor_parallel, 1) * self.head_dim * BF16


def _model(name: str, sizes: str, *, tied: bool = False, qk_norm: bool = False, max_positions: int) -> Architecture:
    layers, hidden, heads, kv_heads, intermediate, vocab = (int(x) for x in sizes.split())
    return Architecture(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=128,
        intermediate=intermediate,
        vocab=vocab,
        tied=tied,
        attention_bias=not qk_norm,  # Qwen2 has the bias, Qwen3 the norm
        qk_norm=qk_norm,
        max_positions=max_positions,
    )


# Published config.json. Sizes: layers, hidden, heads, KV heads, intermediate, vocabulary.
# OpenReasoning-Nemotron-1.5B is Qwen2.5-1.5B's architecture; its authors evaluate it with 64K tokens of output.
MODELS = {
    model.name.lower(): model
    for model in (
        _model("OpenReasoning-Nemotron-1.5B", "28 1536 12 2 8960 151936", tied=True, max_positions=131072),
        _model("Qwen2.5-Math-7B", "28 3584 28 4 18944 152064", max_positions=4096),
        _model("Qwen2.5-7B", "28 3584 28 4 18944 152064", max_positions=131072),
        _model("Qwen3-8B-Base", "36 4096 32 8 12288 151936", qk_norm=True, max_positions=32768),
        _model("Qwen2.5-32B", "64 5120 40 8 27648 152064", max_positions=131072),
    )
}
FAMILIES = {"qwen2": (True, False), "qwen3": (False, True), "llama": (False, False), "mistral": (False, False)}
"""model_type: whether there is a bias on queries, keys and values, and a norm on queries and keys."""


def get_architecture(model: str) -> Architecture:
    """The model of that name, or of a local folder or config.json. ValueError says what there is."""
    known = MODELS.get(model.rpartition("/")[2].lower())
    path = Path(model)
    if path.is_dir() or path.is_file():
        return read_config(path / "config.json" if path.is_dir() else path)
    if known is None:
        names = ", ".join(m.name for m in MODELS.values())
        raise ValueError(f"unknown model {model!r}; choose from {names}, or give a folder that holds a config.json")
    return known


def read_config(path: Path) -> Architecture:
    """Read a config.json of Hugging Face. ValueError on a kind of model whose cost is not known here."""
    if not path.is_file():
        raise ValueError(f"{path.parent} holds no config.json")
    try:
        found = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    kind = found.get("model_type") if isinstance(found, dict) else None
    if kind not in FAMILIES:
        raise ValueError(f"{path} is a model of type {kind!r}; plan knows dense models: {', '.join(FAMILIES)}")
    bias, qk_norm = FAMILIES[kind]
    heads = _size(found, "num_attention_heads", path)
    hidden = _size(found, "hidden_size", path)
    return Architecture(
        name=path.resolve().parent.name,
        layers=_size(found, "num_hidden_layers", path),
        hidden=hidden,
        heads=heads,
        kv_heads=found.get("num_key_value_heads") or heads,
        head_dim=found.get("head_dim") or hidden // heads,
        intermediate=_size(found, "intermediate_size", path),
        vocab=_size(found, "vocab_size", path),
        tied=bool(found.get("tie_word_embeddings", False)),
        attention_bias=bias,
        qk_norm=qk_norm,
        max_positions=_size(found, "max_position_embeddings", path),
    )


def _size(found: dict[str, Any], key: str, path: Path) -> int:
    value = found.get(key)
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{path}: {key} must be a positive integer; got {value!r}")
    return value
