"""What is said of controllers: checks, descriptions, lineups."""
