"""vLLM as a rollout engine, and the transfer of weights to it."""
