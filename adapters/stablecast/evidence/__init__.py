"""Judge what happened: rules, traces, packet captures, Spark jobs, and replays under another configuration."""
