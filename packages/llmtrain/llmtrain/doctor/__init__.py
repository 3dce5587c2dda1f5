"""Checks of a machine (`llmtrain doctor`), and trial trainings compared with their plan (`llmtrain first-hour`)."""
