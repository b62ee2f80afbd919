"""Tests that look at the app as a visitor does, in a real Chromium."""
