"""The documented failure runs, live: real processes, real crashes, judged at the end."""
