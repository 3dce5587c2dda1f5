"""vLLM as a rollout engine, and the way of weights into it."""
