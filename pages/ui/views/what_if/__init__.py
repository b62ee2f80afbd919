"""Draws the views of the page What if; each has a function `show(session)`."""
