"""Holds the lessons, and the code that reads them, measures their models and marks their answers."""
