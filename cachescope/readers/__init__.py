"""Bytes to frames: one module per kind of source. Never torch, never `pickle.load`."""
