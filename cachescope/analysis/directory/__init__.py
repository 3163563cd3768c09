"""What a cache directory says by itself: entries of one key, equal code, what names what, and what can go.

Each module is one question about the frame of entries; `links` has what joins the files of one cache.
"""
