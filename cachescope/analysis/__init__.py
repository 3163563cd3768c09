"""Rows to rows: why lookups missed, what the causes are, how often they hit. No I/O, no torch.

Modules here serve several rooms: what a field is, what changed in it, guards, and what a user names.
"""
