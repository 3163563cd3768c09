"""Logs in columns: what the index keeps, what workers give back, and what a fleet's folder holds.

`kept_logs` is the index. Whoever may have changed such columns, `log_table_check` holds them against what a reader gives.
"""
