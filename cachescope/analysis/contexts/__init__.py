"""Isolation contexts: of runs, their keys, what differs."""
