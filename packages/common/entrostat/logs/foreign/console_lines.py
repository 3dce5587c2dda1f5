"""Console output of verl and OpenRLHF, with whatever else was printed.

(TaskRunner pid=7) step:12 - actor/entropy:0.43 - critic/score/mean:np.float64(0.5) - ...             verl
INFO 11-25 02:00:00 ppo_trainer.py:547] ✨ Global step 12: {'policy_loss': 0.1, 'reward': 0.5, ...}    OpenRLHF
... ✨ Evaluation completed in 0:01:02, global_step 12, eval_metrics: {'eval_aime_pass1': 0.1, ...}
"""

import re
from collections.abc import Iterator

from .rows import LimitedFile, Row

COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
VERL = re.compile(r"(?<![\w/])step:(\d{1,15}) - ([^\n]*)")
OPENRLHF = re.compile(r"[Gg]lobal[ _]step (\d{1,15})[^{}\n]{0,40}\{([^\n]*)\}")
WRAPPED = r"(?:np\.\w{1,20}\(|tensor\()?"
NUMBER = r"([-+]?(?:\d[\d.]{0,40}(?:[eE][-+]?\d{1,4})?|nan|inf))"
VALUE = re.compile(WRAPPED + NUMBER)
PAIR = re.compile(rf"'([^'\n]{{1,300}})': {WRAPPED}{NUMBER}")
NO_STEPS = re.compile(rb"^\{'loss': ", re.MULTILINE)
"""Line that the trainers of transformers and TRL print, which has no step."""


def is_console(head: bytes) -> bool:
    """Return True if there is a line of verl or OpenRLHF."""
    text = COLOURS.sub("", head.decode("utf-8", "replace"))
    return bool(VERL.search(text) or OPENRLHF.search(text))


def read_console(file: LimitedFile) -> Iterator[Row]:
    """Yield the lines with metrics; all others are passed over."""
    for line in file.lines():
        if "step" not in line or not (line.endswith("\n") or not file.cut):
            continue
        plain = COLOURS.sub("", line)
        if found := VERL.search(plain):
            yield Row("", int(found[1]), _of_verl(found[2]))
        elif found := OPENRLHF.search(plain):
            yield Row("", int(found[1]), {name: float(value) for name, value in _pairs(found[2])})


def _of_verl(text: str) -> dict[str, float]:
    metrics = {}
    for part in text.split(" - "):
        name, _, value = part.rpartition(":")
        if name and (found := VALUE.match(value)):
            metrics[name.strip()] = _number(found[1])
    return metrics


def _pairs(text: str) -> Iterator[tuple[str, float]]:
    for name, value in PAIR.findall(text):
        yield name, _number(value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # such as 1.2.3
        return float("nan")
