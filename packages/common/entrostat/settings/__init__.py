"""What is set: allowed values, types of fields, command lines, names of others, files of settings."""
