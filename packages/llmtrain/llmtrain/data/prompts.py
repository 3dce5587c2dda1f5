"""Prompts for a model: token ids of plain text or chat messages.

question ► with system prompt and instruction ► chat template ► ids ► [too long: skipped and counted]
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..process.bounded import bounded
from ..process.text import one_line
from ..settings.config import DataConfig
from .question import Message, Prompt, Question

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

AT_A_TIME = 1000
LONGEST, LARGEST, USUAL = 10.0, 2**30, 0.01
"""Limits for the chat template of a prompt, in seconds and bytes of memory, and more than the usual seconds."""
SHOWN = 60
"""Characters of a prompt shown in errors."""
PROMPT_FIX = "change the row, or data.chat_template, data.system_prompt and data.instruction"


def put(question: Question, config: DataConfig) -> Question:
    """Return the question with the configured system prompt and instruction, as the model receives it."""
    prompt: Prompt = question.prompt
    if isinstance(prompt, str):
        text = _instructed(prompt, config.instruction)
        if not config.as_chat:
            if config.system_prompt:
                raise ValueError("data.system_prompt needs chat messages: set data.as_chat to true")
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
    """Return token ids of each prompt: text is tokenized directly, messages through the chat template.

    A template adds special tokens itself, and ends at the start of the assistant's turn.

    Args:
        tokenizer: tokenizer with the chat template.
        prompts: prompts to encode.
        where: names of the prompts in errors; by default errors start with the prompt's text.

    Raises:
        ValueError: for messages if the tokenizer has no chat template, and for a prompt that the template or the
            tokenizer refuses.
    """
    found: list[list[int]] = [[]] * len(prompts)
    for chat in (False, True):
        chosen = [i for i, prompt in enumerate(prompts) if isinstance(prompt, str) != chat]
        if not chosen:
            continue
        places = [(where[i] if where else "") or _quoted(prompts[i]) for i in chosen]
        texts = _texts(tokenizer, [prompts[i] for i in chosen], places)
        ids = token_ids(tokenizer, texts, places, special=not chat, fix=PROMPT_FIX)
        for i, one in zip(chosen, ids, strict=True):
            found[i] = list(one)
    return found


def _quoted(prompt: Prompt) -> str:
    return f"prompt {quoted(prompt if isinstance(prompt, str) else prompt[-1]['content'])}"


def quoted(text: str) -> str:
    """Return the start of a text in one line, quoted, for messages."""
    return repr(one_line(text, SHOWN))


def _texts(tokenizer: "PreTrainedTokenizerBase", prompts: Sequence[Prompt], places: Sequence[str]) -> list[str]:
    """Return prompts as texts. Raises ValueError if a chat template fails, or needs too much time or memory."""
    texts: list[str] = []
    try:
        with bounded(LONGEST + len(prompts) * USUAL, LARGEST):
            for prompt, place in zip(prompts, places, strict=True):
                texts.append(_rendered(tokenizer, prompt, place))
    except (TimeoutError, MemoryError) as error:
        beyond = f"{LARGEST >> 30} GiB" if isinstance(error, MemoryError) else f"{LONGEST:g} s"
        at = places[len(texts)]
        raise ValueError(f"{at}: the chat template needs more than {beyond}: set another data.chat_template") from None
    return texts


def _rendered(tokenizer: "PreTrainedTokenizerBase", prompt: Prompt, place: str) -> str:
    if isinstance(prompt, str):
        return prompt
    if not tokenizer.chat_template:
        raise ValueError(
            "prompts are chat messages, but this tokenizer has no chat template: set data.chat_template, or set "
            "data.as_chat to false for plain text"
        )
    from jinja2 import TemplateError

    try:
        return str(tokenizer.apply_chat_template(list(prompt), add_generation_prompt=True, tokenize=False))
    except (MemoryError, TimeoutError):
        raise
    except Exception as error:  # a template may do what it likes
        kind = "" if isinstance(error, TemplateError) else f"{type(error).__name__}: "
        raise ValueError(
            f"{place}: the chat template fails: {kind}{one_line(error)}; set another data.chat_template, or remove "
            "data.system_prompt if the template refuses it"
        ) from None


def token_ids(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], places: Sequence[str], *, special: bool, fix: str
) -> Sequence[Sequence[int]]:
    """Return token ids of texts, with the tokenizer's special tokens around them if `special`.

    Raises ValueError with the place and the fix for the first text that the tokenizer cannot encode.
    """
    try:
        found = tokenizer(list(texts), add_special_tokens=special)["input_ids"]
        return [_with_one_bos(tokenizer, ids) for ids in found] if special else found
    except Exception as error:
        # tokenizers raises a plain Exception for unknown text and does not say which text, so bisect
        if type(error) is not Exception:
            raise
        if len(texts) == 1:
            raise ValueError(f"{places[0]}: the tokenizer cannot encode the text ({one_line(error)}): {fix}") from None
    half = len(texts) // 2
    first = token_ids(tokenizer, texts[:half], places[:half], special=special, fix=fix)
    return [*first, *token_ids(tokenizer, texts[half:], places[half:], special=special, fix=fix)]


def _with_one_bos(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> Sequence[int]:
    """Return token ids without the second of two tokens that begin a text: plain text may be written with one."""
    bos = tokenizer.bos_token_id
    return ids[1:] if bos is not None and list(ids[:2]) == [bos, bos] else ids


def template(config: DataConfig) -> str:
    """Return the configured chat template, or "" for none. Raises ValueError if its file is missing."""
    if not config.chat_template:
        return ""
    if not Path(config.chat_template).is_file():
        raise ValueError(f"data.chat_template {config.chat_template} is not a file")
    return Path(config.chat_template).read_text()


def use_template(tokenizer: "PreTrainedTokenizerBase", config: DataConfig) -> None:
    """Set the tokenizer's chat template to the configured one, if any."""
    if config.chat_template:
        tokenizer.chat_template = template(config)


def within(tokenizer: "PreTrainedTokenizerBase", questions: Sequence[Question], limit: int) -> list[Question]:
    """Return the questions whose prompts have at most `limit` tokens, in their order."""
    kept: list[Question] = []
    for start in range(0, len(questions), AT_A_TIME):
        some = questions[start : start + AT_A_TIME]
        ids = encode_all(tokenizer, [question.prompt for question in some], [question.where for question in some])
        kept += [question for question, one in zip(some, ids, strict=True) if len(one) <= limit]
    return kept
