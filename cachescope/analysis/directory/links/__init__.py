"""What belongs together in a cache directory, what is alone, and what can go.

`frame` joins the files, `orphans` and `removable` ask what nothing names. What is removable must be proven.
"""
