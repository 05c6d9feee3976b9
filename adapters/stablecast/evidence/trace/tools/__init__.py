"""Tools for people who look into traces: dump, diff, analyze, prune, and travel through time."""
