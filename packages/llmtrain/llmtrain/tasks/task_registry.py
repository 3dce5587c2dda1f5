"""Tasks by name: questions from files, a generated task of TASKS, a plug-in, or the user's module:function."""

from dataclasses import replace
from functools import partial

from entrostat.settings.importing import outside

from ..settings.config import TaskConfig, TrainConfig
from ..verifiers.own_error import told
from ..verifiers.reward_function import RewardFunction
from .generated import TASKS
from .questions import question_task
from .task import Task

FILES = "files"
"""Name of the task whose questions come from files."""
GROUP = "llmtrain.tasks"
"""Group of entry points that declare tasks: functions from TaskConfig to Task."""
NO_FILES = "no questions to train on: name question files with --data.train-files"


def get_task(config: TrainConfig) -> Task:
    """Return the task of questions from files if the configuration names files, else the task of `config.task`.

    Raises ValueError for a file that cannot be read, for an unknown task, and for task "files" without files.
    """
    if config.task.name == FILES and not config.data.train_files:
        raise ValueError(NO_FILES)
    reward = config.reward.function
    found = question_task(config.data, bool(reward)) if config.data.train_files else generated_task(config.task)
    if not reward:
        return found
    workers, timeout = config.data.verifier_workers, config.data.verifier_timeout * max(config.rollout.group_sizes)
    return replace(found, start_reward=partial(RewardFunction, reward, workers=workers, timeout=timeout))


def generated_task(config: TaskConfig) -> Task:
    """Return the task called `config.name`: one of TASKS, or the result of a function elsewhere for the configuration.

    The function is `module:function`, or a name of a plug-in.

    Raises ValueError for an unknown task, and if the function does not return a Task, or raises: with its last frame.
    """
    if config.name in TASKS:
        return TASKS[config.name](config)
    place = outside("task", config.name, [*TASKS, FILES], GROUP, form="module:function")
    function = place.load()
    try:
        made = function(config)
    except Exception as error:
        raise ValueError(f"{place} fails: {told(error, function).line}") from error
    if not isinstance(made, Task):
        raise ValueError(f"{place} returned {type(made).__name__}, not llmtrain.tasks.Task")
    return made
