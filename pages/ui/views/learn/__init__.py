"""The page Learn: the list of lessons, and a lesson, step by step."""
