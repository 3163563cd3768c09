"""What happened, in the order of time: rows of lookups, entries and runs, and what had become of each key.

`rows` is what the other rooms walk through; `timeline` and `past_of_keys` say what was stored, when, and by whom.
"""
