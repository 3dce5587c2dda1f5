"""Studies of runs: the law between entropy and reward, and estimators of the entropy change."""
