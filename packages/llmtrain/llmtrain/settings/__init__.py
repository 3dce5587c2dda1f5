"""Settings of a run: frozen dataclasses, presets, and YAML files merged into them."""
