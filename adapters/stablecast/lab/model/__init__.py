"""Check the TLA+ models of the protocol, and prove that the core is equal to them.

`tla/` at the root of the source tree holds the models, which TLC checks. For chosen constants the explorer visits every
state and step of the core, and both graphs must be equal. Digests of their canonical form are recorded, so that the
comparison needs no Java (`stablecast model equal`).
"""
