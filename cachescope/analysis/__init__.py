"""Rows to rows: why lookups missed, what the causes are, how often they hit. No I/O, no torch.

The modules here serve several packages: what a field is, what changed in it, guards, and names that users give.
"""
