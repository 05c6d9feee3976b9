"""Schedules of faults, for every simulator: made smaller, and drawn from many seeds that are run on all cores."""
