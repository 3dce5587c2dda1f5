"""Console output of verl, OpenRLHF, prime-rl, slime, TRL and ms-swift, with whatever else was printed.

(TaskRunner pid=7) step:12 - actor/entropy:0.43 - critic/score/mean:np.float64(0.5) - ...             verl
INFO 11-25 02:00:00 ppo_trainer.py:547] ✨ Global step 12: {'policy_loss': 0.1, 'reward': 0.5, ...}    OpenRLHF
12:00:00 SUCCESS Step 12 | Time: 7.1s | Loss: 0.0012 | Entropy: 0.4300 | ...                           prime-rl
[2026-01-01 12:00:00] rollout 6: {'rollout/raw_reward': 0.5, ...}                                      slime
[2026-01-01 12:00:00] step 12: {'train/entropy_loss': 0.43, ...}                                       slime
  1%| | 12/1562 [18:48<164:33:29, 379.99s/it]{'loss': 0.0, 'entropy': 0.43, ..., 'epoch': 0.02}        TRL
{'eps': 1, 'objective/scores': 0.5, 'policy/entropy_avg': 0.43, ..., 'epoch': 0.27}                    TRL's PPO
{'loss': 0.0, 'entropy/mean': 0.43, ..., 'global_step/max_steps': '12/1562', ...}                      ms-swift
... ✨ Evaluation completed in 0:01:02, global_step 12, eval_metrics: {'eval_aime_pass1': 0.1, ...}
"""

import re
from collections import Counter
from collections.abc import Iterator

from .rows import OF_ALL, LimitedFile, Row, of_writer

COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
VERL = re.compile(r"(?<![\w/])step:(\d{1,15}) - ([^\n]*)")
OPENRLHF = re.compile(r"[Gg]lobal[ _]step (\d{1,15})[^{}\n]{0,40}\{([^\n]*)\}")
WRAPPED = r"(?:np\.\w{1,20}\(|tensor\()?"
NUMBER = r"([-+]?(?:\d[\d.]{0,40}(?:[eE][-+]?\d{1,4})?|[nN]a[nN]|[iI]nf(?:inity)?))"
VALUE = re.compile(WRAPPED + NUMBER)
PAIR = re.compile(rf"'([^'\n]{{1,300}})': '?{WRAPPED}{NUMBER}")
PRIME = re.compile(r"\bStep (\d{1,15}) \| ([^\n]*)")
SLIME = re.compile(r"\b(step|rollout) (\d{1,15}): \{([^\n]*)\}")
TRL = re.compile(r"\{'(?:(?:eval_)?loss|eps)': [^{}]*\}")
"""Dictionary that the trainers of transformers print, often after a progress bar."""
OPEN = re.compile(r"\{'(?:(?:eval_)?loss|eps)': [^{}]*$")
"""The beginning of one that a terminal has broken at its width, wherever that was."""
TRAINS = ("{'loss'", "{'eps'")
"""Beginnings of those of a step; the second is that of TRL's PPO."""
MOST_PARTS = 100
"""Upper limit for the lines of a broken dictionary."""
SUPERVISED = "mean_token_accuracy'"
"""Metric that TRL prints in supervised fine-tuning, as eval_ too."""
EPOCH = re.compile(rf"'epoch': '?{NUMBER}")
NOTHING = Row("", None, {})
WRITER = re.compile(
    r"\[(?:rank|default)[ :=_]?(?P<rank>\d{1,6})\]|\brank[=:](?P<named>\d{1,6})\b|^(?P<label>\d{1,6}): "
    r"|^(?P<node>[\w.-]{0,100}\d): |\((?P<pid>\w{1,100} pid=\d{1,10}(?:, ip=[\w.:]{1,50})?)\)",
    re.IGNORECASE,
)
"""Process that wrote a line: what torchrun, a trainer, srun, pdsh and Ray put before it."""
COUNTED = re.compile(rf"'global_step/max_steps': '{OF_ALL.pattern}'")


def writer(text: str) -> str:
    """Return which process wrote a line, from the text before its metrics; empty if that does not say."""
    found = {kind: value for match in WRITER.finditer(text) for kind, value in match.groupdict().items() if value}
    rank = next((found[kind] for kind in ("rank", "named", "label") if kind in found), "")
    return f"rank {rank}" if rank else next((f"{kind} {found[kind]}" for kind in ("node", "pid") if kind in found), "")


def is_console(head: bytes) -> bool:
    """Return True if there is a line of verl or OpenRLHF."""
    text = COLOURS.sub("", head.decode("utf-8", "replace"))
    return bool(VERL.search(text) or OPENRLHF.search(text))


def is_newer_console(head: bytes) -> bool:
    """Return True if there is a line of prime-rl or slime."""
    text = COLOURS.sub("", head.decode("utf-8", "replace"))
    return bool(PRIME.search(text) or SLIME.search(text))


def is_dictionaries(head: bytes) -> bool:
    """Return True if there is a dictionary of TRL's console."""
    return TRL.search(head.decode("utf-8", "replace")) is not None


def read_dictionaries(file: LimitedFile) -> Iterator[Row]:
    """Yield the dictionaries of TRL's console, numbered from 1 unless they have a step.

    If the epoch falls, a run goes on from an earlier step, or another one begins. An evaluation belongs to the training
    step before it. Supervised fine-tuning is left out if there are others.
    """
    steps, epochs, tunings = Counter[str](), dict[str, float](), Counter[str]()
    tuned = list[Row]()
    for line in _joined(file):
        end = 0
        for match in TRL.finditer(line):
            found, by, end = match[0], writer(line[end : match.start()]), match.end()
            by = by if by.startswith("rank") else ""  # a process that is started again goes on counting
            if SUPERVISED in found and "'reward'" not in found:
                tunings[by] += found.startswith(TRAINS)
                tuned.append(Row("", tunings[by], dict(_pairs(found)), by))
                continue
            before = epochs.get(by, 0.0)
            if counted := COUNTED.search(found):
                steps[by] = int(counted[1])
            elif found.startswith(TRAINS):
                epoch = _number(there[1]) if (there := EPOCH.search(found)) else before
                steps[by] = round(steps[by] * epoch / before) if epoch < before else steps[by] + 1
                epochs[by] = epoch
            yield Row("", steps[by], dict(_pairs(found)), by)
    yield from () if any(steps.values()) else tuned


def _joined(file: LimitedFile) -> Iterator[str]:
    """Yield the lines, with those of a broken dictionary as one."""
    parts: list[str] = []
    for line in file.lines():
        if not line.endswith("\n") and file.cut:
            return
        parts.append(line.rstrip("\r\n"))
        if len(parts) == MOST_PARTS or not OPEN.search("".join(parts) if len(parts) > 1 else parts[0]):
            yield "".join(parts)
            parts = []
    yield "".join(parts)


def read_console(file: LimitedFile) -> Iterator[Row]:
    """Yield the lines with metrics; all others are passed over.

    slime counts rollouts, and separately the steps on them; the metrics of a rollout go to the first step on it.
    """
    rollouts: dict[str, Row] = {}
    for line in file.lines():
        if not any(word in line for word in ("step", "Step", "rollout")) or not (line.endswith("\n") or not file.cut):
            continue
        plain = COLOURS.sub("", line)
        if found := VERL.search(plain):
            yield _row(plain, found, _of_verl(found[2]))
        elif found := OPENRLHF.search(plain):
            yield _row(plain, found, dict(_pairs(found[2])))
        elif found := SLIME.search(plain):
            new = _row(plain, found, dict(_pairs(found[3])), 2)
            by = new.writer if new.writer.startswith("rank") else ""  # a rollout's process may be another than a step's
            rollout = rollouts.pop(by, NOTHING)
            joined = new._replace(metrics={**rollout.metrics, **new.metrics})
            if found[1] == "step":
                yield joined
            elif new.step == rollout.step:
                rollouts[by] = joined
            else:
                yield from () if rollout is NOTHING else (rollout,)
                rollouts[by] = new
        elif found := PRIME.search(plain):
            yield _row(plain, found, _of_prime(found[2]))
    yield from rollouts.values()


def _row(line: str, found: re.Match[str], metrics: dict[str, float], step: int = 1) -> Row:
    """Return the metrics that were found in a line as a row. step: group of the match that has it."""
    return Row("", int(found[step]), metrics, writer(line[: found.start()]) or of_writer(metrics))


def _of_verl(text: str) -> dict[str, float]:
    metrics = {}
    for part in text.split(" - "):
        name, _, value = part.rpartition(":")
        if name and (found := VALUE.match(value)):
            metrics[name.strip()] = _number(found[1])
    return metrics


def _of_prime(text: str) -> dict[str, float]:
    parts = (part.partition(":") for part in text.split(" | "))
    return {name.strip(): _number(found[1]) for name, _, value in parts if (found := VALUE.match(value.strip()))}


def _pairs(text: str) -> Iterator[tuple[str, float]]:
    for name, value in PAIR.findall(text):
        yield name, _number(value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # such as 1.2.3
        return float("nan")
