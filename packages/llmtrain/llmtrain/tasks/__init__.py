"""Tasks with a verifiable reward. Importing a task needs no torch."""

from .generated import TASKS
from .registry import get_task
from .task import Task

__all__ = ["TASKS", "Task", "get_task"]
