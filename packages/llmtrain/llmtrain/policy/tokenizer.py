"""Tokenizers of built models, of characters or of byte pairs, and the tokenizer of a folder as it was saved."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

PAD = "<pad>"
EOS = "<eos>"
TURN = ("<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""ChatML, the turns that Qwen's models know."""
PLAIN = ("TokenizersBackend", "PreTrainedTokenizerFast")
"""Classes of a tokenizer that is its tokenizer.json and nothing else."""


def build_char_tokenizer(alphabet: str) -> PreTrainedTokenizerFast:
    """One token for each character of `alphabet`, after <pad> (id 0) and <eos> (id 1).

    There is no unknown token: text with a character outside the alphabet fails to encode.

    Raises:
        ValueError: for an empty alphabet or a repeated character.
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
    """At most `vocab_size` tokens: <pad> (id 0), <eos> (id 1), those of ChatML, all bytes, and byte pairs of the texts.

    Any text can be encoded, and decodes to itself. Its chat template is ChatML.

    Raises:
        ValueError: when not even the bytes have room.
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


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer in the folder of a model; nothing is downloaded.

    AutoTokenizer puts the one that is usual for the model type in the place of a plain one: Qwen's, for a Qwen model,
    which would leave out the spaces between the numbers of a prompt.

    Raises:
        ValueError: of one line when there is none, or one that cannot be read.
    """
    config = Path(folder) / "tokenizer_config.json"
    named = json.loads(config.read_text()).get("tokenizer_class") if config.is_file() else None
    loader = PreTrainedTokenizerFast if named in PLAIN else AutoTokenizer
    try:
        found: PreTrainedTokenizerBase = loader.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # tokenizers raises that itself
        there = (Path(folder) / "tokenizer.json").is_file()
        why = str(error).strip().splitlines()[0] if there else "it has no tokenizer.json"
        raise ValueError(f"the tokenizer of model folder {folder} cannot be read: {why}") from error
    return found
