"""Progress of TRL's trainer: one line of chosen metrics at each log, instead of all of them."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import PrinterCallback, ProgressCallback


class Progress(TrainerCallback):
    """Printer of the step and of some metrics, by name, in the process that logs; those without a number are absent."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self.metrics = metrics

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        known = {name: logs[name] for name in self.metrics if name in logs} if logs else {}
        found = [f"{name} {value:.3g}" for name, value in known.items() if isinstance(value, Real)]
        if found and state.is_world_process_zero:
            last = f"/{state.max_steps}" if (state.max_steps or 0) > 0 else ""
            print(f"step {state.global_step}{last}: {', '.join(found)}", flush=True)


def show_progress(trainer: Any, metrics: Sequence[str]) -> None:
    """Let a trainer print these metrics at each log, without the progress bar and the metrics that it prints itself.

    Raises TypeError on a name in place of a list of names.
    """
    if isinstance(metrics, str):
        raise TypeError(f"progress must be a list of metrics, such as [{metrics!r}], not {metrics!r}")
    trainer.remove_callback(ProgressCallback)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(Progress(metrics))
