"""Example of a plug-in for entrostat: names declared in pyproject.toml, and nothing to import here."""
