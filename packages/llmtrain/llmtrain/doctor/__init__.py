"""llmtrain doctor: what works on this machine."""
