"""The page What if, which the frontend draws whole."""
