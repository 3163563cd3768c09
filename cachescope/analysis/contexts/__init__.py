"""Isolation contexts of runs, their keys, their differences, and whether a process would find stored entries.

`of_runs` reconstructs them from logs; `prediction` checks the entries of a directory against the fields of a process.
"""
