"""Tools for people who read traces: dump, diff, analyze, prune, and travel through time."""
