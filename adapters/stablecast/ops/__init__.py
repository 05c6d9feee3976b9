"""Tools for operators: the monitor and operations on stores."""
