"""Draws the page Learn: the list of lessons, lessons, rooms and handouts."""
