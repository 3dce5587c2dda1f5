"""Tokens of a response for the run log: their texts join, their numbers are those of the plan."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from entrostat import Tokens, diagnose, make
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.sequences.samples import TokenTable, pieces, token_columns


@pytest.fixture(scope="module")
def byte_level():
    """A tokenizer with one token for each byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def test_pieces_join_to_the_text(byte_level):
    text = "a é\n“x” 🙂b"
    ids = byte_level(text)["input_ids"]
    found = pieces(byte_level, ids)
    assert len(found) == len(ids) > len(text)
    assert "".join(found) == text == byte_level.decode(ids)
    assert found[:4] == ["a", " ", "", "é"]
    torn = ids[: ids.index(byte_level("🙂")["input_ids"][0]) + 2]
    assert "".join(pieces(byte_level, torn)) == byte_level.decode(torn)
    assert pieces(byte_level, []) == []


def test_pieces_look_as_they_do_behind_their_neighbour():
    """At the beginning of a text this decoder leaves out the space that a word begins with."""
    tokenizer = Tokenizer(models.WordLevel({"▁one": 0, "▁two": 1}, "▁one"))
    tokenizer.decoder = decoders.Metaspace()
    assert pieces(PreTrainedTokenizerFast(tokenizer_object=tokenizer), [0, 1, 1, 0]) == ["one", " two", " two", " one"]


def test_special_tokens_are_told():
    tokenizer = build_char_tokenizer("0123456789+")
    ids = [*tokenizer("1+2")["input_ids"], tokenizer.eos_token_id]
    assert pieces(tokenizer, ids) == ["1", "+", "2", "<eos>"]


@pytest.fixture
def tokens() -> Tokens:
    """Three sequences of 4, 3 and 5 tokens over 6 words."""
    generator = torch.Generator().manual_seed(0)
    logp = torch.randn(12, 6, generator=generator, dtype=torch.float64).mul(2).log_softmax(-1)
    p, taken = logp.exp(), logp[:, 0]
    return Tokens(
        logp=taken,
        old_logp=taken - 0.3,
        advantage=torch.tensor([1.0] * 4 + [-0.5] * 3 + [0.7] * 5, dtype=torch.float64),
        entropy=-(p * logp).sum(-1),
        s2=(p**2).sum(-1),
        s2l=(p**2 * logp).sum(-1),
        s2ll=(p**2 * logp**2).sum(-1),
        seq_id=torch.tensor([7] * 4 + [2] * 3 + [5] * 5),
    )


def test_columns_are_those_of_the_plan(tokens):
    plan = make("steer", lambda_min=0.2).plan(tokens)
    parts = [token_columns(tokens, plan, (tokens.seq_id == i).nonzero()[:, 0]) for i in (7, 2, 5)]
    joined = {name: torch.tensor([x for part in parts for x in part[name]]) for name in parts[0]}
    assert set(joined) == {"logp", "entropy", "advantage", "weight", "entropy_change"}
    for name in ("logp", "entropy", "advantage"):
        torch.testing.assert_close(joined[name].double(), getattr(tokens, name), rtol=1e-3, atol=0)
    torch.testing.assert_close(joined["weight"].double(), plan.weight, rtol=1e-3, atol=0)
    assert joined["weight"].unique().numel() > 3
    flow = diagnose(tokens, plan)["flow/policy"].item()
    assert joined["entropy_change"].sum().item() == pytest.approx(flow, rel=1e-2)


def test_numbers_are_short_and_finite_or_null(tokens):
    entropy = tokens.entropy.clone()
    entropy[5] = float("nan")
    given = {**tokens.__dict__, "entropy": entropy}
    columns = token_columns(Tokens(**given), make("grpo").plan(tokens), torch.arange(4, 7))
    assert columns["entropy"][1] is None
    assert columns["entropy_change"][1] is None
    assert all(len(repr(abs(x)).lstrip("0.").replace(".", "")) <= 4 for x in columns["logp"])


def test_without_statistics_there_is_no_entropy_change(tokens):
    bare = Tokens(logp=tokens.logp, old_logp=tokens.old_logp, advantage=tokens.advantage)
    columns = token_columns(bare, make("grpo").plan(bare), torch.arange(4))
    assert set(columns) == {"logp", "advantage", "weight"}


def test_a_table_takes_the_first_update_that_holds_its_sequence(tokens):
    plan = make("grpo").plan(tokens)
    for sequence, length in ((5, 5), (3, 0)):
        table = TokenTable(sequence)
        table.see(tokens, plan)
        later = Tokens(**{**tokens.__dict__, "logp": tokens.logp - 1})
        table.see(later, plan)
        assert len(table.columns.get("logp", [])) == length
    first = TokenTable(5)
    first.see(tokens, plan)
    first.see(later, plan)
    assert first.columns["logp"][0] == pytest.approx(tokens.logp[7].item(), rel=1e-3)
