"""What happened, in time order: rows of lookups, entries and runs, and the past of each key.

The other rooms walk through `rows`; `timeline` and `past_of_keys` work out what was stored, when, and by whom.
"""
