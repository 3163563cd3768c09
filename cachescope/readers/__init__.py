"""Bytes to frames: logs, cache directories, snapshots, saved scopes. Never torch, never `pickle.load`.

`sources` finds the reader of a path, `reading` is what every reader gives, `assemble` makes the frames.
"""
