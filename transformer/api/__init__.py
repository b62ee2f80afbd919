"""The HTTP API: serves what the engine computes to browsers, notebooks and other programs."""
