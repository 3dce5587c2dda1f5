"""Rollouts: engines that sample responses, and the transfer of weights to them.

rollout_engine.py: the engine interface. hf.py: sampling with the policy itself. vllm/: vLLM. ray/: engines as actors of
a cluster.
"""
