"""What an operator's configuration of a source can come to: the shortest run to a loss or a stall.

`instance` reads the configuration, `stores` and `sources` remember what the core's endpoints do, `world` plays them
against each other, `search` looks for the shortest run, `story` tells it, `command` is what the command line calls.
"""
