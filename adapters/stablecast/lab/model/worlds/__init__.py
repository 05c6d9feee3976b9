"""The worlds: one module for each model, named like it; each drives the core's own machines."""
