"""Statements about controllers: checks, descriptions, lineups, claims."""
