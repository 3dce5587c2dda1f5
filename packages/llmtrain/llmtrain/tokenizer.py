"""A character tokenizer that is a real transformers tokenizer: it saves to a folder and loads with AutoTokenizer."""

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD = "<pad>"
EOS = "<eos>"


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
