"""Demonstrate the documented failure scenarios with real processes and real crashes."""
