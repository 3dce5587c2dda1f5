"""Published runs as files: recipes/<paper>/<run>.yaml, each value with its source. No torch."""
