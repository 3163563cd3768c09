"""Why lookups missed: verdicts, what they are compared with, the causes that remain, and what to do about them.

`judging` is the way in. `misses` gives the verdicts, `baselines` finds what to compare with, `causes` groups them.
"""
