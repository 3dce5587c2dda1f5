"""Sizes of dense decoder-only transformers with grouped-query attention, SwiGLU and RMSNorm."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entrostat.settings.choosing import unknown

BF16 = 2
"""Bytes per weight, activation or KV-cache entry."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Sizes from a model's config.json, and the parameter counts derived from them."""

    name: str
    family: str
    """model_type of its config.json: qwen2, qwen3, llama or mistral."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool
    """True if the output layer shares its weights with the embedding."""
    attention_bias: bool
    """True if queries, keys and values have a bias."""
    qk_norm: bool
    """True if queries and keys are normalised per head."""
    max_positions: int
    """Longest sequence (prompt and response), in tokens."""

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
        """Parameters of the output layer, the same number as in the embedding."""
        return self.vocab * self.hidden

    @property
    def params(self) -> int:
        """All parameters; a tied output layer counts once."""
        return self.layers * self.layer_params + self.hidden + self.head_params * (1 if self.tied else 2)

    @property
    def decode_params(self) -> int:
        """Parameters read per decoded token: all, except the embedding if it is a separate table."""
        return self.params if self.tied else self.params - self.head_params

    def kv_bytes(self, tensor_parallel: int = 1) -> int:
        """Return KV-cache bytes per token on a GPU; KV heads are replicated if there are more GPUs than KV heads."""
        return 2 * self.layers * max(self.kv_heads // tensor_parallel, 1) * self.head_dim * BF16


def _model(name: str, sizes: str, *, tied: bool = False, max_positions: int, head_dim: int = 128) -> Architecture:
    family, *numbers = sizes.split()
    layers, hidden, heads, kv_heads, intermediate, vocab = map(int, numbers)
    bias, qk_norm = FAMILIES[family]
    return Architecture(
        name=name,
        family=family,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=intermediate,
        vocab=vocab,
        tied=tied,
        attention_bias=bias,
        qk_norm=qk_norm,
        max_positions=max_positions,
    )


FAMILIES = {"qwen2": (True, False), "qwen3": (False, True), "llama": (False, False), "mistral": (False, False)}
"""(attention_bias, qk_norm) by model_type."""

# Published config.json. Sizes: model_type, layers, hidden, heads, KV heads, intermediate, vocabulary.
# OpenReasoning-Nemotron-1.5B is Qwen2.5-1.5B's architecture; its authors evaluate it with 64K tokens of output.
MODELS = {
    model.name.lower(): model
    for model in (
        _model("OpenReasoning-Nemotron-1.5B", "qwen2 28 1536 12 2 8960 151936", tied=True, max_positions=131072),
        _model("Qwen2.5-Math-1.5B", "qwen2 28 1536 12 2 8960 151936", tied=True, max_positions=4096),
        _model("Qwen2.5-Math-7B", "qwen2 28 3584 28 4 18944 152064", max_positions=4096),
        _model("Qwen2.5-0.5B", "qwen2 24 896 14 2 4864 151936", tied=True, max_positions=32768, head_dim=64),
        _model("Qwen2.5-1.5B", "qwen2 28 1536 12 2 8960 151936", tied=True, max_positions=131072),
        _model("Qwen2.5-3B", "qwen2 36 2048 16 2 11008 151936", tied=True, max_positions=32768),
        _model("Qwen2.5-7B", "qwen2 28 3584 28 4 18944 152064", max_positions=131072),
        _model("Qwen2.5-7B-Instruct", "qwen2 28 3584 28 4 18944 152064", max_positions=32768),
        _model("Qwen2.5-14B", "qwen2 48 5120 40 8 13824 152064", max_positions=131072),
        _model("Qwen2.5-32B", "qwen2 64 5120 40 8 27648 152064", max_positions=131072),
        _model("Qwen2.5-Coder-3B", "qwen2 36 2048 16 2 11008 151936", tied=True, max_positions=32768),
        _model("Qwen2.5-Coder-7B", "qwen2 28 3584 28 4 18944 152064", max_positions=32768),
        _model("Qwen2.5-Coder-14B", "qwen2 48 5120 40 8 13824 152064", max_positions=32768),
        _model("Qwen3-4B-Base", "qwen3 36 2560 32 8 9728 151936", tied=True, max_positions=32768),
        _model("Qwen3-8B-Base", "qwen3 36 4096 32 8 12288 151936", max_positions=32768),
        _model("Qwen3-8B", "qwen3 36 4096 32 8 12288 151936", max_positions=40960),
        _model("Llama-3.1-8B", "llama 32 4096 32 8 14336 128256", max_positions=131072),
        _model("Llama-3.1-8B-Instruct", "llama 32 4096 32 8 14336 128256", max_positions=131072),
        _model("Llama-3.2-3B", "llama 28 3072 24 8 8192 128256", tied=True, max_positions=131072),
        _model("deepseek-math-7b-base", "llama 30 4096 32 32 11008 102400", max_positions=4096),
        _model("Mistral-7B-v0.3", "mistral 32 4096 32 8 14336 32768", max_positions=32768),
        _model("Mistral-Nemo-Base-2407", "mistral 40 5120 32 8 14336 131072", max_positions=128000),
        _model("Mistral-Small-24B-Base-2501", "mistral 40 5120 32 8 32768 131072", max_positions=32768),
    )
}
USUAL_WINDOW = 4096
"""Default sliding window in tokens, as in transformers."""


def get_architecture(model: str) -> Architecture:
    """Return the architecture of a known model, or of a local folder or config.json. Raises ValueError if unknown."""
    known = MODELS.get(model.rpartition("/")[2].lower())
    path = Path(model)
    if path.is_dir() or path.is_file():
        return read_config(path / "config.json" if path.is_dir() else path)
    if known is None:
        names = [m.name for m in MODELS.values()]
        listed = f"choose from {', '.join(names)}, or give a folder with a config.json"
        raise ValueError(unknown("model", model, names, listed))
    return known


def read_config(path: Path) -> Architecture:
    """Return the architecture in a Hugging Face config.json. Raises ValueError for an unsupported model type."""
    if not path.is_file():
        raise ValueError(f"{path.parent} contains no config.json")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON in UTF-8: {error}") from None
    kind = found.get("model_type") if isinstance(found, dict) else None
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(f"{path} is a model of type {kind!r}; plan supports dense models only: {', '.join(FAMILIES)}")
    bias, qk_norm = FAMILIES[kind]
    heads, hidden = _size(found, "num_attention_heads", path), _size(found, "hidden_size", path)
    kv_heads = _size(found, "num_key_value_heads", path, heads)
    if heads % kv_heads:
        raise ValueError(f"{path}: num_attention_heads {heads} must be a multiple of num_key_value_heads {kv_heads}")
    positions = _positions(found, path)
    _check_window(found, positions, path)
    return Architecture(
        name=path.resolve().parent.name,
        family=kind,
        layers=_size(found, "num_hidden_layers", path),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_size(found, "head_dim", path, hidden // heads),
        intermediate=_size(found, "intermediate_size", path),
        vocab=_size(found, "vocab_size", path),
        tied=_flag(found, "tie_word_embeddings", path),
        attention_bias=bias,
        qk_norm=qk_norm,
        max_positions=positions,
    )


def _size(found: dict[str, Any], key: str, path: Path, usual: int | None = None) -> int:
    value = usual if found.get(key) is None else found[key]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{path}: {key} must be a positive integer; got {value!r}")
    return value


def _flag(found: dict[str, Any], key: str, path: Path) -> bool:
    value = found.get(key, False)
    if not isinstance(value, bool):
        raise ValueError(f"{path}: {key} must be true or false; got {value!r}")
    return value


def _positions(found: dict[str, Any], path: Path) -> int:
    """Return the longest sequence, lengthened by YaRN and the like, as `llmtrain.training.check.positions` does."""
    limit = _size(found, "max_position_embeddings", path)
    rope = found.get("rope_scaling") or found.get("rope_parameters") or {}
    if not isinstance(rope, dict):
        raise ValueError(f"{path}: rope_scaling must be a mapping; got {rope!r}")
    factor = rope.get("factor") or 1
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < math.inf:
        raise ValueError(f"{path}: the factor of rope_scaling must be a positive number; got {factor!r}")
    return max(limit, int(_size(rope, "original_max_position_embeddings", path, limit) * factor))


def _check_window(found: dict[str, Any], positions: int, path: Path) -> None:
    """Raise ValueError if attention has a sliding window: Mistral by default, Qwen2 and Qwen3 if enabled."""
    kind, window = found["model_type"], found.get("sliding_window", USUAL_WINDOW)
    used = kind == "mistral" or (kind != "llama" and _flag(found, "use_sliding_window", path))
    if used and window is not None and _size(found, "sliding_window", path, window) < positions:
        raise ValueError(f"{path}: attention has a sliding window of {window:,} tokens; plan needs full attention")
