"""What happened, in time order: lookups, entries and runs, and the past of each key.

All start from one `history.History`; `timeline` and `past_of_keys` work out what was stored, when, and by whom.
"""
