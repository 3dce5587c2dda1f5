"""Rollouts: who samples responses, and how weights get there.

rollout_engine.py: what the trainer asks of an engine. hf.py: the policy samples for itself. vllm/: vLLM. ray/: engines
as actors of a cluster.
"""

from .hf import HFRollout, stop_ids

__all__ = ["HFRollout", "stop_ids"]
