"""Runs on a Ray cluster: learners and rollout engines as actors, and who goes where."""
