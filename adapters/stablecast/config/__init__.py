"""Options: one table of names, types, units and defaults; everything that configures an endpoint goes through it."""
