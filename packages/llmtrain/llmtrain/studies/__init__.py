"""Studies of finished runs: comparison, the law between entropy and reward, probes, leaderboard."""
