"""Tests the app in a real Chromium."""
