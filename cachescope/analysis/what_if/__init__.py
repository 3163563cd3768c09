"""Replaying recorded lookups under other keys."""
