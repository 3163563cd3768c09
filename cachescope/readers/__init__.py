"""Turns bytes into frames: logs, cache directories, snapshots, saved scopes. Never torch, never `pickle.load`.

`sources` finds the reader of a path, `reading` defines what every reader returns, `assemble` builds the frames.
"""
