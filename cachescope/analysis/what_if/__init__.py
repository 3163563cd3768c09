"""Replays recorded lookups under other keys: what would hit if some fields did not count, and whether that is safe.

`keys` makes the keys, `replay` walks the lookups again, `frames` reports the result. No key of torch is made here.
"""
