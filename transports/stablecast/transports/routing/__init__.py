"""The machines of a router: what each domain wants, who is repeated where, and what waits or is dropped on the way.

`router` joins them. The other modules hold one idea each and do not know each other.
"""
