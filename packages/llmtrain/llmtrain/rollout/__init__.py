"""Rollouts: what is sampled (rollouts.py), by whom (engine.py; hf.py, vllm_engine.py), and how weights get there."""

from .hf import HFRollout, stop_ids
from .rollouts import Rollouts, join, merge

__all__ = ["HFRollout", "Rollouts", "join", "merge", "stop_ids"]
