"""Frames to frames: why lookups missed, what the causes are, how often they hit. No I/O, no torch.

Here stands what several rooms need: what a field is, what changed in it, guards, and what a user names.
"""
