"""What works on a machine: checks (`llmtrain doctor`), and trainings beside their plan (`llmtrain first-hour`)."""
