"""Replays recorded lookups under other keys: what would hit if some fields did not count, and whether that is safe.

`keys` makes the keys, `replay` plays the lookups again, `results` reports what became of them. No key of torch is made here.
"""
