"""Tasks with a verifiable reward. Importing a task needs no torch."""

from .generated import TASKS
from .questions import question_task
from .registry import FILES, NO_FILES, get_task
from .task import Task

__all__ = ["FILES", "NO_FILES", "TASKS", "Task", "get_task", "question_task"]
