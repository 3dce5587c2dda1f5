"""Logs of runs, ours and others': reading, laws, doubts, diagnosis."""
