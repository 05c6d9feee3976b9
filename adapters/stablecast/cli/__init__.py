"""The `stablecast` command."""
