"""Frames to frames: why lookups missed, what the causes are, how often they hit. No I/O, no torch."""
