"""Lessons: files that ask before they show, the measures that they are about, and what a visitor has answered."""
