"""Leaderboard: every controller in four environments, on the same seeds, against the reward–entropy frontier.

entries ► sweep ► standings (means over seeds with bootstrap intervals) ► page and picture
"""
