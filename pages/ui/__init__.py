"""Holds what the pages share: state, cached calls of models, figures, components, lessons and views."""
