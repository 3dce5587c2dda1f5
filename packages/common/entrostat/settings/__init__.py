"""Settings and their sources: allowed values, types of fields, command lines, names of others, files of settings."""
