"""llmtrain first-hour: everything that a machine with GPUs should be tried with before a run is paid for."""
