"""Page Compare."""
