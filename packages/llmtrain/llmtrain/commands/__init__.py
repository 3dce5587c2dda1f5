"""Commands of `llmtrain`, one file each. No other module imports them."""
