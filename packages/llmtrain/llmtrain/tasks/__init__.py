"""Tasks with a verifiable reward. Importing a task needs no torch."""

from .task import TASKS, Task, get_task

__all__ = ["TASKS", "Task", "get_task"]
