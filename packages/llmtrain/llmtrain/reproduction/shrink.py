"""Small form of a recipe, which runs on a laptop in seconds.

Kept are the controller and its values, the advantage, the loss, the optimizer, dynamic sampling, the data sets' names
and their number, the number of updates of a rollout (at most MOST_UPDATES), and the engines (vLLM, DeepSpeed with its
ZeRO stage and precision, Ray) if all of them are installed: one learner and one rollout engine, on the GPU if torch
finds one, for which vLLM is built then. Otherwise one process on the CPU does everything. Replaced are

- the model: a random one of the same family with a few thousand parameters, and a tokenizer of the same class;
- the questions: ROWS made-up ones for each file, or for each of its parts, in verl's form, with its name;
- the verifiers: a random model answers nothing, so a pattern that about half of all responses match decides, under the
  recipe's sources;
- lengths, prompts, responses and steps.

In one process, which takes less time: --rollout.name hf --engine.name torch --topology.name local --device cpu.
"""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..plan.architecture import Architecture, get_architecture
from ..recipes.recipe import Recipe, data_sets
from ..settings.config import TrainConfig
from ..verifiers.by_source import Named
from .asked import Asked
from .placed import full_config, placed

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

MOST_UPDATES = 4
PROMPTS, ROWS, HELD_OUT = 4, 4, 2
"""Prompts of a rollout, and questions of a file to train and to evaluate on: a rollout is an epoch of one file."""
PROMPT, RESPONSE = 128, 12
"""Longest prompt and response, in tokens, which are bytes here."""
HALF = "[a-m]"
"""Pattern that about half of the responses of a random model match."""
WIDTH, LAYERS, HEADS = 64, 2, 2
STEPS = 2
SAMPLES = 2
"""Upper limit for the responses to a question in an evaluation."""
ENGINES = ("vllm", "deepspeed", "ray")
"""Packages of the engines that a recipe runs with."""
KV_CACHE = 0.25
"""Memory of vLLM's KV cache, in GiB."""


def shrunk(asked: Asked) -> TrainConfig:
    """Return the small form of a recipe; writes its model and questions if they are not there yet."""
    import torch

    recipe = asked.recipe
    full = full_config(placed(recipe, _enough(recipe, asked), asked.gpu))
    updates = max(n for n in (1, 2, MOST_UPDATES) if n <= full.rollout.prompts // full.optim.mini_batch_size)
    out = Path("runs/shrunk") / recipe.name
    model = write_model(recipe, Path("runs/shrunk/models"))
    files = write_questions(recipe, Path("runs/shrunk/data"))
    held_out = tuple(files[name] for name in recipe.value("data.val_files", ()))
    has_engines = all(map(find_spec, ENGINES))
    engines = full if has_engines else TrainConfig()
    return replace(
        full,
        out=str(out),
        overwrite=True,
        steps=STEPS,
        save_every=1,
        device="cuda" if has_engines and torch.cuda.is_available() else "cpu",
        nproc=1,
        threads=1,
        model=replace(full.model, path=str(model)),
        data=replace(
            full.data,
            train_files=tuple(files[name] for name in recipe.value("data.train_files")),
            val_files=held_out,
            prompt_key="",
            answer_key="",
            max_prompt_length=PROMPT,
            verifier=" ".join(["regex", *(f"{source}=regex" for source in Named.of(full.data.verifier).by_source)]),
            verifier_workers=1,
        ),
        rollout=replace(
            full.rollout,
            name=engines.rollout.name,
            kv_cache_gib=KV_CACHE,
            prompts=PROMPTS,
            n=2,
            max_new_tokens=RESPONSE,
            max_model_len=PROMPT + RESPONSE,
            tensor_parallel_size=1,
            gen_batch_size=2 * PROMPTS if full.rollout.filter_groups else 0,
        ),
        reward=replace(full.reward, overlong_buffer=min(full.reward.overlong_buffer, RESPONSE // 2)),
        optim=replace(full.optim, mini_batch_size=PROMPTS // updates, micro_batch_tokens=1024),
        engine=engines.engine,
        topology=replace(engines.topology, rollout_engines=0, address="", weight_sync="object"),  # on any machine
        eval=replace(
            full.eval,
            every=1 if held_out else 0,
            k=SAMPLES,
            samples=SAMPLES,
            max_samples=SAMPLES if full.eval.settings else 0,
            max_new_tokens=RESPONSE,
        ),
        checkpoint=replace(full.checkpoint, keep_best=re.sub(r"@\d+$", f"@{SAMPLES}", full.checkpoint.keep_best)),
        log=replace(full.log, tensorboard=False),
    )


def _enough(recipe: Recipe, asked: Asked) -> int:
    """Return a number of GPUs on which the whole recipe can be planned: a laptop need not know."""
    return recipe.gpus if recipe.gpus in recipe.placement else asked.gpus


def write_model(recipe: Recipe, folder: Path) -> Path:
    """Return the folder of a random model of the recipe's family, written if it is not there."""
    name = recipe.model.rpartition("/")[2]
    path = folder / name
    if (path / "model.safetensors").is_file() and (path / "tokenizer.json").is_file():
        return path
    import torch
    from transformers import AutoModelForCausalLM

    from ..policy.model import save

    tokenizer = small_tokenizer(get_architecture(name))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(small_config(get_architecture(name), tokenizer), dtype=torch.float32)
    path.mkdir(parents=True, exist_ok=True)
    save(model, tokenizer, path)
    return path


def small_config(shape: Architecture, tokenizer: "PreTrainedTokenizerBase") -> "PretrainedConfig":
    """Return a configuration of the same family: with grouped queries, tied embeddings and norms where it has them."""
    from transformers import AutoConfig

    return AutoConfig.for_model(
        shape.family,
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS if shape.kv_heads == shape.heads else HEADS // 2,
        head_dim=WIDTH // HEADS,
        max_position_embeddings=2 * (PROMPT + RESPONSE),
        tie_word_embeddings=shape.tied,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def small_tokenizer(shape: Architecture) -> "PreTrainedTokenizerBase":
    """Return a tokenizer of bytes: of Qwen's class for Qwen's models, else of the plain one that Llama 3 has."""
    from ..policy.tokenizer import CHAT_TEMPLATE, TURN, build_bpe_tokenizer

    if not shape.family.startswith("qwen"):
        return build_bpe_tokenizer([], 4 + 256)
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import Qwen2Tokenizer

    letters = sorted(ByteLevel.alphabet())
    vocab = {"<|endoftext|>": 0} | {letter: i for i, letter in enumerate(letters, 1)}
    return Qwen2Tokenizer(vocab=vocab, merges=[], additional_special_tokens=list(TURN), chat_template=CHAT_TEMPLATE)


def write_questions(recipe: Recipe, folder: Path) -> dict[str, str]:
    """Return small files of questions by the names of the recipe's data sets, written if they are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name in dict.fromkeys(recipe.data_sets):
        path = folder / f"{Path(data_sets()[name]['file']).stem}.jsonl"
        if not path.is_file():
            count = ROWS if name in recipe.value("data.train_files") else HELD_OUT
            rows = [question(name, part, i) for part in parts(name) for i in range(count)]
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        found[name] = str(path)
    return found


def parts(name: str) -> list[dict[str, str]]:
    """Return the columns that tell the parts of a data set apart, with the values of each part; one without columns."""
    columns = data_sets()[name].get("parts", {})
    return [{column: value} for column, values in columns.items() for value in values] or [{}]


def question(name: str, part: Mapping[str, str], number: int) -> dict[str, Any]:
    """Return a made-up question in verl's form, of a part of a data set."""
    drawn = random.Random(f"{name} {' '.join(part.values())} {number}")
    asked = f"What is {drawn.randrange(100)} + {drawn.randrange(100)}?"
    return {
        "data_source": data_sets()[name].get("source", name),
        "prompt": [{"role": "user", "content": asked}],
        "reward_model": {"style": "rule", "ground_truth": HALF},
        "extra_info": {"index": number},
        **part,
    }
