"""Tests, mirroring the packages. A package, so that another's top-level `tests` cannot stand in its place."""
