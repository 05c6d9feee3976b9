"""Search for the shortest run in which a source's configuration loses a stable message or stalls.

`instance` reads the configuration. `stores` and `sources` cache what the core's endpoints do. `world` combines them,
`search` finds the shortest run, `story` prints it, and `command` serves the command line.
"""
