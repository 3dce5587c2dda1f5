"""The task of a run."""

from ..settings.config import TrainConfig
from .generated import TASKS
from .questions import question_task
from .task import Task

FILES = "files"
"""Name of the task whose questions come from files."""
NO_FILES = "no questions to train on: name files of them with --data.train-files"


def get_task(config: TrainConfig) -> Task:
    """Questions from files where the configuration names some, else the problems of `config.task`.

    Raises:
        ValueError: for a file that cannot be read, and where files are wanted and none are named.
    """
    if config.task.name == FILES and not config.data.train_files:
        raise ValueError(NO_FILES)
    return question_task(config.data) if config.data.train_files else TASKS[config.task.name](config.task)
