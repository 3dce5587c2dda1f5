"""Studies of runs: comparison, the law between entropy and reward, probes, leaderboard."""
