"""Model card of a trained checkpoint, in the form that the Hugging Face Hub shows: metadata, then Markdown."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from entrostat.settings.plain_yaml import dump_yaml

from ..evaluation.report import MISSING, number
from ..settings.config import TrainConfig
from ..settings.nested import to_dict
from .comparison import Run

HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
SCORE = re.compile(r"eval/((?:[^/]+/)?(?:avg|pass|maj)@\d+)")
LOCAL = ("model.path", "data.train_files", "data.val_files")
"""Settings that name files of one machine: the card has the last part of their paths."""
HIDDEN = ("out", "overwrite", "threads", "log", "profile")
"""Settings without an effect on the model."""
CARD = """\
# {name}

Trained by reinforcement learning with verifiable rewards (RLVR) for {steps} rollout steps on {questions}: advantage
`{advantage}`, entropy controller `{controller}`. Made with entrostat {version}.

## Entropy and reward

| | first step | last third of the steps |
|---|---:|---:|
| entropy (nats) | {entropy_first} | {entropy_late} |
| reward | {reward_first} | {reward_late} |

Target of the entropy: {target}.

![Entropy, reward and pass@k over the rollout steps](training.png)

## Evaluation

{evaluation}

## Settings

Those that differ from the defaults of `llmtrain train`; seed {seed}.

```yaml
{settings}
```

## Use

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForCausalLM.from_pretrained("FOLDER")
prompt = tokenizer({prompt!r}, return_tensors="pt", add_special_tokens=False)
print(tokenizer.decode(model.generate(**prompt, do_sample=True, max_new_tokens={tokens})[0]))
```

## Versions

{versions}
"""


def model_card(name: str, run: Run, config: TrainConfig, manifest: Mapping[str, Any], step: int, prompt: str) -> str:
    """Return the card of the checkpoint after `step` rollout steps.

    name: title. run: log of the run up to that step. manifest: its manifest.json. prompt: an example, as the model sees
    it.
    """
    names = [part for name in config.controller.split("+") if (part := name.strip())]
    metadata: dict[str, Any] = {"library_name": "transformers", "pipeline_tag": "text-generation"}
    if base := base_model(config):
        metadata["base_model"] = base
    metadata["tags"] = ["rlvr", "entropy-control", "entrostat", *names]
    versions = manifest.get("versions", {})
    files = config.data.train_files
    text = CARD.format(
        name=name,
        steps=step,
        questions=", ".join(f"`{Path(file).name}`" for file in files) if files else f"the task `{config.task.name}`",
        advantage=config.advantage,
        controller=" + ".join(names),
        version=versions.get("entrostat", MISSING),
        entropy_first=number(first(run, "entropy")),
        entropy_late=number(run.late("entropy")),
        reward_first=number(first(run, "reward")),
        reward_late=number(run.late("reward")),
        target=f"{run.verdict()} (relative error over the last third)" if run.target is not None else "none",
        evaluation=evaluation(run),
        seed=config.seed,
        settings=dump_yaml(differing(config)).rstrip(),
        prompt=prompt,
        tokens=config.rollout.max_new_tokens,
        versions=", ".join(f"{name} {version}" for name, version in versions.items()) or MISSING,
    )
    return f"---\n{dump_yaml(metadata)}---\n\n{text}"


def first(run: Run, key: str) -> float:
    """Return the first value of a metric; NaN if it was never logged."""
    values = run.series(key)[1]
    return float(values[0]) if len(values) else float("nan")


def base_model(config: TrainConfig) -> str:
    """Return the base model's name on the Hub; empty if the run began with a folder of this machine or a new model."""
    path = config.model.path or ""
    return path if HUB_NAME.fullmatch(path) and not Path(path).exists() else ""


def evaluation(run: Run) -> str:
    """Return the scores of the last evaluation in the log, with their intervals, as Markdown."""
    scored = [line for line in run.metrics if any(SCORE.fullmatch(key) for key in line)]
    if not scored:
        return "The run logged no evaluation."
    last = scored[-1]
    rows = ["| score | held-out questions | 95% interval |", "|---|---:|---:|"]
    for key in last:
        if found := SCORE.fullmatch(key):
            low, high = last.get(f"{key}/low"), last.get(f"{key}/high")
            between = MISSING if low is None or high is None else f"{low:.3f} to {high:.3f}"
            rows.append(f"| {found[1]} | {last[key]:.3f} | {between} |")
    told = "Intervals cover other questions (bootstrap), not other seeds."
    return "\n".join([f"After {last['step']} rollout steps.", "", *rows, "", told])


def differing(config: TrainConfig) -> dict[str, Any]:
    """Return the settings that differ from the defaults, without folders of this machine."""
    found: dict[str, Any] = {}
    defaults = to_dict(TrainConfig())
    for name, value in to_dict(config).items():
        if name in HIDDEN or value == defaults[name]:
            continue
        if isinstance(value, dict) and name != "controller_args":
            found[name] = {key: _short(f"{name}.{key}", x) for key, x in value.items() if x != defaults[name].get(key)}
        else:
            found[name] = _short(name, value)
    return found


def _short(name: str, value: Any) -> Any:
    if name not in LOCAL or value is None:
        return value
    if isinstance(value, list):
        return [_short(name, x) for x in value]
    return value if HUB_NAME.fullmatch(value) and not Path(value).exists() else Path(value).name
