"""The lock of a cache: what its files and the processes that made its keys were, and whether they still are.

`lock` writes one, and reads it and trusts nothing in it; `verifying` checks a directory and this machine against it. What
is in one is put together in `cachescope.answers.locked`. What verifies loads neither torch nor pandas: an init container runs it before every start.
"""
