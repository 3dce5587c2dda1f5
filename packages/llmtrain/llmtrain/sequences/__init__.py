"""Sequences of tokens: packed rollouts, batches, layouts and their exchange between ranks."""
