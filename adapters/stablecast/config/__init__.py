"""Options and configuration files: one table of names, types, units and defaults configures every endpoint."""
