"""Tokenizers: character and byte-pair tokenizers for built models, and loading of a saved tokenizer."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

from ..process.text import one_line
from .own_code import CodeRefusedError, refusing_code

PAD = "<pad>"
EOS = "<eos>"
TURN = ("<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""ChatML, the chat format of Qwen's models."""
FILES = ("tokenizer.json", "*.model", "vocab*", "*.tiktoken", "tekken.json", "tokenizer*.py", "tokenization*.py")
"""Files that hold the tokens of a tokenizer, or make one."""
PLAIN = ("TokenizersBackend", "PreTrainedTokenizerFast")
"""Classes of tokenizers that consist of their tokenizer.json only."""


def build_char_tokenizer(alphabet: str) -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token per character of `alphabet`, after <pad> (id 0) and <eos> (id 1).

    It has no unknown token: text with a character outside the alphabet fails to encode.

    Raises:
        ValueError: on an empty alphabet or a repeated character.
    """
    if not alphabet or len(set(alphabet)) != len(alphabet):
        raise ValueError(f"alphabet must be distinct characters; got {alphabet!r}")
    vocab = {token: i for i, token in enumerate([PAD, EOS, *alphabet])}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token=""))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, clean_up_tokenization_spaces=False
    )


def build_bpe_tokenizer(texts: Iterable[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Return a tokenizer with at most `vocab_size` tokens, trained on the texts, with ChatML as chat template.

    Its tokens are <pad> (id 0), <eos> (id 1), ChatML's, all bytes, and byte pairs of the texts. Any text can be encoded
    and decodes to itself.

    Raises:
        ValueError: if `vocab_size` is too small for the bytes.
    """
    special, bytes_ = [PAD, EOS, *TURN], pre_tokenizers.ByteLevel.alphabet()
    if vocab_size < len(special) + len(bytes_):
        raise ValueError(f"model.vocab_size must be at least {len(special) + len(bytes_)}; got {vocab_size}")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, initial_alphabet=bytes_, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        additional_special_tokens=list(TURN),
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def load_tokenizer(folder: str | Path, trust_remote_code: bool = False) -> PreTrainedTokenizerBase:
    """Return the tokenizer in a model folder; downloads nothing.

    A plain tokenizer is not loaded with AutoTokenizer, which would replace it by the usual one of the model type, such
    as Qwen's for a Qwen model, which drops the spaces between the numbers of a prompt. It would do so too if it
    may not run a tokenizer's own class.

    trust_remote_code: run the Python code of a folder that brings its own class.

    Raises:
        ValueError: in one line, if there is no tokenizer or it cannot be read, or needs code that is not trusted.
    """
    if not any(any(Path(folder).glob(pattern)) for pattern in FILES):
        raise ValueError(f"the tokenizer of model folder {folder} cannot be read: it has no tokenizer.json")
    file = Path(folder) / "tokenizer_config.json"
    try:
        config = dict(json.loads(file.read_text())) if file.is_file() else {}
    except (ValueError, TypeError) as error:
        raise ValueError(f"model folder {folder}: {file.name} is not an object in JSON: {one_line(error)}") from None
    named = config.get("tokenizer_class")
    if config.get("auto_map") and not trust_remote_code and tokenizer_class_from_name(named or "") is None:
        raise CodeRefusedError(folder)
    loader = PreTrainedTokenizerFast if named in PLAIN else AutoTokenizer
    try:
        with refusing_code(folder):
            found: PreTrainedTokenizerBase = loader.from_pretrained(
                folder, local_files_only=True, trust_remote_code=trust_remote_code
            )
    except CodeRefusedError:
        raise
    except Exception as error:  # the type that tokenizers raises
        raise ValueError(f"the tokenizer of model folder {folder} cannot be read: {one_line(error)}") from error
    return found
