"""The task of a run."""

from ..config import TrainConfig
from .generated import TASKS
from .questions import question_task
from .task import Task


def get_task(config: TrainConfig) -> Task:
    """Questions from files where the configuration names some, else the problems of `config.task`.

    Raises:
        ValueError: for a file that cannot be read.
    """
    return question_task(config.data) if config.data.train_files else TASKS[config.task.name](config.task)
