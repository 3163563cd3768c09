"""The one place that touches a live torch, imported inside functions."""
