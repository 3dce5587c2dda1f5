"""Mathematics of tokens, without rules: reductions, segments, moments, flows, loops."""
