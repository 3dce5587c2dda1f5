"""Mathematical answers: reading, and comparing with the truth."""
