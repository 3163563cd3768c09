"""Logs as columns: for the index, for the results of workers, and for the folder of a fleet.

`kept_logs` is the index. Anyone may have changed stored columns: `log_tables` checks that a reader could return them.
"""
