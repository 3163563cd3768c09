"""Isolation contexts: of runs, their keys, what differs between them, and whether a process would find what is stored.

`of_runs` reads them from what was recorded, `prediction` holds the entries of a directory against the fields of a process.
"""
