"""Turns pickles into inert objects: nothing is imported, nothing is called, and limits bound time and memory.

Start at `inert_pickle`. After a change to the rest, run `tests/fuzz` and the tests with hostile pickles.
"""
