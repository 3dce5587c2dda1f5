"""Questions from files, their order in training, and subsets of them.

files.py ► tables.py ► columns.py ► read.py ► [Question] ► order.py (training), selection.py (data diversity)
prompts.py: prompts for a model. labels.py: names of files that are read together.
"""

from .labels import labels
from .order import Mixture
from .question import Message, Prompt, Question
from .read import Read, read

__all__ = ["Message", "Mixture", "Prompt", "Question", "Read", "labels", "read"]
