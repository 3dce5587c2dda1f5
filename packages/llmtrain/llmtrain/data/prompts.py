"""Prompts as the model reads them: token ids of plain text or of chat messages.

question ► with system prompt and instruction ► chat template ► ids ► [too long: left out and counted]
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..process.text import one_line
from ..settings.config import DataConfig
from .question import Message, Prompt, Question

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

AT_A_TIME = 1000
SHOWN = 60
"""Characters of a prompt that an error shows."""
PROMPT_FIX = "change the row, or what data.chat_template, data.system_prompt and data.instruction add"


def put(question: Question, config: DataConfig) -> Question:
    """The question as it is put to the model, with what the configuration says before and after it."""
    prompt: Prompt = question.prompt
    if isinstance(prompt, str):
        text = _instructed(prompt, config.instruction)
        if not config.as_chat:
            if config.system_prompt:
                raise ValueError("data.system_prompt needs chat messages: leave data.as_chat on")
            return replace(question, prompt=text)
        messages: list[Message] = [{"role": "user", "content": text}]
    else:
        *before, last = prompt
        messages = [*before, {**last, "content": _instructed(last["content"], config.instruction)}]
    if config.system_prompt and messages[0]["role"] != "system":
        messages = [{"role": "system", "content": config.system_prompt}, *messages]
    return replace(question, prompt=tuple(messages))


def _instructed(text: str, instruction: str) -> str:
    return f"{text}\n\n{instruction}" if instruction else text


def encode_all(
    tokenizer: "PreTrainedTokenizerBase", prompts: Sequence[Prompt], where: Sequence[str] = ()
) -> list[list[int]]:
    """Token ids of each prompt: text as the tokenizer takes it, messages through its chat template.

    A template writes its special tokens itself, and ends where the assistant's turn begins.

    Args:
        tokenizer: with the chat template.
        prompts: to encode.
        where: what errors call each prompt; without it they begin with its text.

    Raises:
        ValueError: for messages and a tokenizer without a chat template, and for a prompt that the template or the
            tokenizer refuses.
    """
    found: list[list[int]] = [[]] * len(prompts)
    for chat in (False, True):
        chosen = [i for i, prompt in enumerate(prompts) if isinstance(prompt, str) != chat]
        if not chosen:
            continue
        places = [(where[i] if where else "") or _quoted(prompts[i]) for i in chosen]
        texts = [_rendered(tokenizer, prompts[i], place) for i, place in zip(chosen, places, strict=True)]
        ids = token_ids(tokenizer, texts, places, special=not chat, fix=PROMPT_FIX)
        for i, one in zip(chosen, ids, strict=True):
            found[i] = list(one)
    return found


def _quoted(prompt: Prompt) -> str:
    return f"prompt {quoted(prompt if isinstance(prompt, str) else prompt[-1]['content'])}"


def quoted(text: str) -> str:
    """The beginning of a text, in a line, as messages show it."""
    return repr(one_line(text, SHOWN))


def _rendered(tokenizer: "PreTrainedTokenizerBase", prompt: Prompt, place: str) -> str:
    if isinstance(prompt, str):
        return prompt
    if not tokenizer.chat_template:
        raise ValueError(
            "prompts are chat messages and this tokenizer has no chat template: give one with data.chat_template, "
            "or plain text with data.as_chat off"
        )
    from jinja2 import TemplateError

    try:
        return str(tokenizer.apply_chat_template(list(prompt), add_generation_prompt=True, tokenize=False))
    except TemplateError as error:
        raise ValueError(
            f"{place}: the chat template fails: {one_line(error)}; give another with data.chat_template, or leave out "
            "data.system_prompt if it is that"
        ) from None


def token_ids(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], places: Sequence[str], *, special: bool, fix: str
) -> Sequence[Sequence[int]]:
    """Token ids of texts, with the tokenizer's own around them if `special`.

    A ValueError names the place of the first that has a token which the tokenizer does not know, and what to do.
    """
    try:
        return tokenizer(list(texts), add_special_tokens=special)["input_ids"]
    except Exception as error:
        # tokenizers has no class of its own for a text that it does not know, and does not say which of many it is
        if type(error) is not Exception:
            raise
        if len(texts) == 1:
            raise ValueError(f"{places[0]}: the tokenizer does not know its text ({one_line(error)}): {fix}") from None
    half = len(texts) // 2
    first = token_ids(tokenizer, texts[:half], places[:half], special=special, fix=fix)
    return [*first, *token_ids(tokenizer, texts[half:], places[half:], special=special, fix=fix)]


def template(config: DataConfig) -> str:
    """The chat template that the configuration names, "" for none; ValueError when there is no file."""
    if not config.chat_template:
        return ""
    if not Path(config.chat_template).is_file():
        raise ValueError(f"data.chat_template {config.chat_template} is not a file")
    return Path(config.chat_template).read_text()


def use_template(tokenizer: "PreTrainedTokenizerBase", config: DataConfig) -> None:
    """Give the tokenizer the chat template that the configuration names, if any."""
    if config.chat_template:
        tokenizer.chat_template = template(config)


def within(tokenizer: "PreTrainedTokenizerBase", questions: Sequence[Question], limit: int) -> list[Question]:
    """The questions whose prompts have at most `limit` tokens, in their order."""
    kept: list[Question] = []
    for start in range(0, len(questions), AT_A_TIME):
        some = questions[start : start + AT_A_TIME]
        ids = encode_all(tokenizer, [question.prompt for question in some], [question.where for question in some])
        kept += [question for question, one in zip(some, ids, strict=True) if len(one) <= limit]
    return kept
