"""The command `stablecast watch`: judge running traces and live captures, and name each finding within seconds."""
