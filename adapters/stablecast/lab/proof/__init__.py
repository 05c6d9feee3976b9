"""Prove guarantees for any number of stores, lives and messages, and tie the proof to the recorded graphs of the core.

`language` reads formulas and prints them for solvers. `system` holds a transition system and forms its conditions,
`fragment` checks that these are decidable, and `solvers` discharges them. `evaluation` evaluates formulas in finite
structures. `stability`, `registration`, `refill` and `recovery` are the systems. `tie` compares a system with a graph;
`recovery` is compared with none.
"""
