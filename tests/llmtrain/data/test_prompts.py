"""Prompts for a model: system prompt, instruction, templates and length."""

import resource
import signal
from copy import deepcopy

import pytest
from tokenizers.processors import TemplateProcessing

from llmtrain.data import Question
from llmtrain.data.prompts import encode_all, put, use_template, within
from llmtrain.policy.tokenizer import build_bpe_tokenizer, build_char_tokenizer
from llmtrain.settings.config import DataConfig

USER = ({"role": "user", "content": "2+2?"},)
CHAT = ({"role": "system", "content": "Be brief."}, *USER)


@pytest.fixture(scope="module")
def tokenizer():
    return build_bpe_tokenizer(["what is 2+2? it is 4, of course"] * 3, 280)


def encode(tokenizer, prompt):
    return encode_all(tokenizer, [prompt])[0]


def asked(prompt, **settings):
    return put(Question(prompt, "4"), DataConfig(**settings)).prompt


def test_text_becomes_the_users_message():
    assert asked("2+2?") == USER
    assert asked("2+2?", as_chat=False) == "2+2?"


def test_what_is_said_before_and_after():
    said = ({"role": "system", "content": "S"}, {"role": "user", "content": "2+2?\n\nBox it."})
    assert asked("2+2?", system_prompt="S", instruction="Box it.") == said
    assert asked(USER, system_prompt="S", instruction="Box it.") == said
    assert asked("2+2?", as_chat=False, instruction="Box it.") == "2+2?\n\nBox it."
    assert asked(CHAT, system_prompt="S") == CHAT  # it has a system prompt of its own


def test_messages_go_through_the_chat_template(tokenizer):
    ids = encode(tokenizer, CHAT)
    text = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.decode(ids) == text
    turn = tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert ids.count(turn) == 3  # as tokens, not as text


def test_text_and_messages_mixed_keep_their_places(tokenizer):
    found = encode_all(tokenizer, ["a", CHAT, "b", USER])
    assert found == [encode(tokenizer, prompt) for prompt in ("a", CHAT, "b", USER)]
    assert tokenizer.decode(found[2]) == "b"
    assert encode_all(tokenizer, []) == []


def test_special_tokens_of_a_tokenizer_are_added_to_text_and_not_twice_to_messages(tokenizer):
    """Llama's tokenizer adds a first token that the template adds too."""
    other = deepcopy(tokenizer)
    other.backend_tokenizer.post_processor = TemplateProcessing(single="<pad> $A", special_tokens=[("<pad>", 0)])
    other.chat_template = "<pad>{{ messages[0]['content'] }}"
    assert encode(other, "a")[0] == 0
    assert encode(other, USER).count(0) == 1


def test_a_template_from_a_file(tokenizer, tmp_path):
    (tmp_path / "t.jinja").write_text("{% for m in messages %}[{{ m['content'] }}]{% endfor %}")
    plain = build_char_tokenizer("2+?=[]")
    use_template(plain, DataConfig(chat_template=str(tmp_path / "t.jinja")))
    assert plain.decode(encode(plain, USER)) == "[2+2?]"


def test_long_prompts_are_left_out(tokenizer):
    questions = [Question("é" * length, "1") for length in (1, 30, 5, 31)]
    longest = len(encode(tokenizer, questions[1].prompt))
    assert within(tokenizer, questions, longest) == questions[:3]
    assert within(tokenizer, questions, 1) == []


def refusing(template=None):
    tokenizer = build_bpe_tokenizer(["what is 2+2?"] * 3, 280)
    tokenizer.chat_template = template or (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}"
        "{% endif %}{{ m.content }}{% endfor %}"
    )
    return tokenizer


SOME = [Question(USER, "4", where="a.jsonl, line 1"), Question(CHAT, "4", where="a, line 2")]
TEXTS = [Question(text, "4", where=f"a.jsonl, line {i}") for i, text in enumerate(["2", "2+2", "3", "2", "4"], 1)]


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: asked("2+2?", as_chat=False, system_prompt="S"), r"data\.system_prompt"),
        (lambda: encode(build_char_tokenizer("2+?="), USER), r"data\.chat_template.* data\.as_chat"),
        (lambda: use_template(None, DataConfig(chat_template="/none")), r"data\.chat_template .*/none"),
        (
            lambda: within(refusing(), SOME, 99),
            r"^a, line 2: .*System role not supported; .*data\.chat_template.* data\.system_prompt",
        ),
        (lambda: encode(refusing(), CHAT), r"^prompt '2\+2\?': .*System"),
        (lambda: within(refusing("{% for %}"), SOME, 99), r"^a\.jsonl, line 1: .*data\.chat_template"),
        (lambda: within(build_char_tokenizer("2+"), TEXTS, 99), r"^a\.jsonl, line 3: .*WordLevel"),
    ],
)
def test_a_refusal_names_the_setting_or_the_question(call, names):
    with pytest.raises(ValueError, match=names):
        call()


def test_plain_text_that_begins_with_bos_gets_no_second_one():
    other = build_bpe_tokenizer(["what is 2+2? it is 4, of course"] * 3, 280)
    other.add_special_tokens({"bos_token": "<s>"})
    begin = ("<s>", other.bos_token_id)
    other.backend_tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[begin])
    plain = encode(other, "2+2?")
    assert plain[0] == other.bos_token_id
    assert encode(other, "<s>2+2?") == plain
    assert encode(other, "2<s>2?").count(other.bos_token_id) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "more than 1 s"),
        ("{{ 'x' * 3000000000 }}", "more than 1 GiB"),
        ("{% set n = namespace(x='ab') %}{% for i in range(40) %}{% set n.x = n.x ~ n.x %}{% endfor %}", "than 1 GiB"),
    ],
)
def test_a_chat_template_has_limits_of_time_and_memory(template, said, tokenizer, monkeypatch):
    if said.endswith(" s"):
        monkeypatch.setattr("llmtrain.data.prompts.LONGEST", 1.0)
    other = deepcopy(tokenizer)
    other.chat_template = template
    before = limits()
    with pytest.raises(ValueError, match=rf"^b, line 2: .*{said}: .*data\.chat_template"):
        encode_all(other, ["first, as text", USER], ["b, line 1", "b, line 2"])
    assert limits() == before


def limits():
    """Return state that a limit must leave as it was; the seconds left of a timer go on."""
    is_set = signal.getitimer(signal.ITIMER_REAL)[0] > 0
    return resource.getrlimit(resource.RLIMIT_AS), is_set, signal.getsignal(signal.SIGALRM)
