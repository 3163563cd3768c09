"""Why lookups missed: the verdicts, what each miss is compared with, the causes behind them, and what to do about each.

Start at `judging`. `misses` gives the verdicts, `baselines` finds what to compare with, `causes` groups them.
"""
