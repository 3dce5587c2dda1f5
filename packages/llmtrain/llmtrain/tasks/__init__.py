"""Tasks with a verifiable reward. Importing this package does not import torch."""

from .generated import TASKS
from .questions import question_task
from .task import Task
from .task_registry import FILES, NO_FILES, generated_task, get_task

__all__ = ["FILES", "NO_FILES", "TASKS", "Task", "generated_task", "get_task", "question_task"]
