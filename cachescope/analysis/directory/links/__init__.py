"""Which files of a cache directory belong together, which nothing refers to, and which can go.

`frame` joins the files; `orphans` and `removable` find those that nothing names. What is removable must be proven.
"""
