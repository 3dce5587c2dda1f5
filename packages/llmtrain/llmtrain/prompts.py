"""Prompts as the model reads them: token ids of plain text or of chat messages.

question ► with system prompt and instruction ► chat template ► ids ► [too long: left out and counted]
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .config import DataConfig
from .data import Message, Prompt, Question

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

AT_A_TIME = 1000


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


def encode_all(tokenizer: "PreTrainedTokenizerBase", prompts: Sequence[Prompt]) -> list[list[int]]:
    """Token ids of each prompt: text as the tokenizer takes it, messages through its chat template.

    A template writes its special tokens itself, and ends where the assistant's turn begins.

    Raises:
        ValueError: for messages and a tokenizer without a chat template.
    """
    found: list[list[int]] = [[]] * len(prompts)
    for chat in (False, True):
        chosen = [i for i, prompt in enumerate(prompts) if isinstance(prompt, str) != chat]
        if not chosen:
            continue
        texts = [_rendered(tokenizer, prompts[i]) for i in chosen]
        ids = tokenizer(texts, add_special_tokens=not chat)["input_ids"]
        for i, one in zip(chosen, ids, strict=True):
            found[i] = list(one)
    return found


def _rendered(tokenizer: "PreTrainedTokenizerBase", prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return prompt
    if not tokenizer.chat_template:
        raise ValueError(
            "prompts are chat messages and this tokenizer has no chat template: give one with data.chat_template, "
            "or plain text with data.as_chat off"
        )
    return str(tokenizer.apply_chat_template(list(prompt), add_generation_prompt=True, tokenize=False))


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
        ids = encode_all(tokenizer, [question.prompt for question in some])
        kept += [question for question, one in zip(some, ids, strict=True) if len(one) <= limit]
    return kept
