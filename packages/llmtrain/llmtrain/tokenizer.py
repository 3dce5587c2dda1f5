"""A character tokenizer that is a real transformers tokenizer, and the tokenizer of a folder as it was saved."""

import json
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

PAD = "<pad>"
EOS = "<eos>"
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


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer in the folder of a model; nothing is downloaded.

    AutoTokenizer puts the one that is usual for the model type in the place of a plain one: Qwen's, for a Qwen model,
    which would leave out the spaces between the numbers of a prompt.
    """
    config = Path(folder) / "tokenizer_config.json"
    named = json.loads(config.read_text()).get("tokenizer_class") if config.is_file() else None
    loader = PreTrainedTokenizerFast if named in PLAIN else AutoTokenizer
    found: PreTrainedTokenizerBase = loader.from_pretrained(folder, local_files_only=True)
    return found
