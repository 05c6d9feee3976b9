"""Worlds of the models, one module for each model; each drives the core's own machines."""
