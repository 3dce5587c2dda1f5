"""The character tokenizer and its round trip through a folder."""

import pytest
from transformers import AutoTokenizer

from llmtrain.policy.tokenizer import build_char_tokenizer, load_tokenizer
from llmtrain.verifiers.countdown import ALPHABET


def test_one_token_per_character_and_back():
    tokenizer = build_char_tokenizer(ALPHABET)
    text = "12 3 5=22:(12+5) *3/3"
    ids = tokenizer(text)["input_ids"]
    assert len(ids) == len(text)
    assert tokenizer.decode(ids) == text
    assert len(tokenizer) == len(ALPHABET) + 2
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1)


def test_loads_again_with_auto_tokenizer(tmp_path):
    tokenizer = build_char_tokenizer(ALPHABET)
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    text = "3 5 7=22:5*3+7"
    assert loaded(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert loaded.decode(loaded(text)["input_ids"]) == text
    assert (loaded.pad_token_id, loaded.eos_token_id) == (tokenizer.pad_token_id, tokenizer.eos_token_id)


@pytest.mark.parametrize(
    ("text", "said"), [(None, ".*tokenizer.json"), ('{"version": "1.0"}', "[^\n]+"), ("{", "[^\n]+")]
)
def test_a_tokenizer_that_cannot_be_read_is_told_in_one_line(tmp_path, text, said):
    build_char_tokenizer(ALPHABET).save_pretrained(tmp_path)
    if text is None:
        (tmp_path / "tokenizer.json").unlink()
    else:
        (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(ValueError, match=rf"^[^\n]*tokenizer of .*{tmp_path} .*: {said}$"):
        load_tokenizer(tmp_path)


def test_newline_is_a_character_like_any_other():
    tokenizer = build_char_tokenizer("a\n")
    assert tokenizer("a\na")["input_ids"] == [2, 3, 2]


def test_unknown_character_fails():
    with pytest.raises(Exception, match="vocabulary"):
        build_char_tokenizer(ALPHABET)("3 x")


@pytest.mark.parametrize("alphabet", ["", "aa"])
def test_bad_alphabet(alphabet):
    with pytest.raises(ValueError, match="distinct"):
        build_char_tokenizer(alphabet)
