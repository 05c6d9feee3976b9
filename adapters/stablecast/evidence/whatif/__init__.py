"""What if a recorded source had been configured otherwise: the same core, the same arrivals, another configuration."""
