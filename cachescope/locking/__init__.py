"""The lock of a cache: what its files and the processes that made its keys were, and whether they still are.

`making` writes one, `lock_text` reads it and trusts nothing in it, `verifying` holds a directory and this machine against
it. What verifies loads neither torch nor pandas: an init container runs it before every start.
"""
