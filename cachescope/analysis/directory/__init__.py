"""What a cache directory alone shows: entries under one key, equal code, links between files, and what can be removed.

Each module answers one question about the frame of entries; `links` joins the files of one cache.
"""
