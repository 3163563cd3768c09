"""Pickles to inert objects: nothing is imported, nothing is called, and nothing asks for more than its limits.

`inert_pickle` is the way in. Change the rest only with `tests/fuzz` and the hostile pickles of the tests at hand.
"""
