"""The command `stablecast verify`: judge traces and captures, here or on Spark, and print the verdicts."""
