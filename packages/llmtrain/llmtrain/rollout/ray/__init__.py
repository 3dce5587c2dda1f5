"""Rollout engines as actors of a Ray cluster."""
