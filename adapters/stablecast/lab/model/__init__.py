"""Models of the protocols, and the proof that the core is equal to them.

`tla/` at the root of the source tree holds the models, written in TLA+ and checked with TLC. For chosen constants the
core itself is explored, every state and every step; both graphs must be the same, which no count can show: digests of
their canonical form are on record, so that no Java is needed to compare (`stablecast model equal`).
"""
