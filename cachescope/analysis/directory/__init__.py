"""What a cache directory alone shows: entries of one key, equal code, which file names which, and what can go.

Each module answers one question about the frame of entries; `links` joins the files of one cache.
"""
