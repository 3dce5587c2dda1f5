"""The leaderboard: every controller trains the same model, on the same seeds.

entries ► runs, each a folder that can be resumed ► standings (means over seeds) ► page and picture
"""
