"""Whole worlds: the shipped programs and the code of users in virtual time, on simulated hosts."""
