"""Progress of TRL's trainer: one line of chosen metrics at each log, instead of all of them."""

from collections.abc import Sequence
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import PrinterCallback, ProgressCallback


class Progress(TrainerCallback):
    """Printer of the step and of some metrics, by name, in the process that logs. Metrics not logged are left out."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self.metrics = metrics

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        found = [f"{name} {logs[name]:.3g}" for name in self.metrics if logs and name in logs]
        if found and state.is_world_process_zero:
            print(f"step {state.global_step}/{state.max_steps}: {', '.join(found)}", flush=True)


def show_progress(trainer: Any, metrics: Sequence[str]) -> None:
    """Let a trainer print these metrics at each log, without the progress bar and the metrics that it prints itself."""
    trainer.remove_callback(ProgressCallback)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(Progress(metrics))
