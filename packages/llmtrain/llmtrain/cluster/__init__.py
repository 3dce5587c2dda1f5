"""Runs on a Ray cluster: learners and rollout engines as actors, and their placement."""
