"""Published runs on this machine: what they need, their settings for the trainer, and a small form of each."""
