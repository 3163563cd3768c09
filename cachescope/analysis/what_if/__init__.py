"""Replays recorded lookups under other keys: what would hit if some fields did not count, and whether that is safe.

`keys` makes the keys, `cells` says what each directory contained, `replay` plays the lookups again, and `results` and `causes` report what
became of them. No key of torch is made here.
"""
