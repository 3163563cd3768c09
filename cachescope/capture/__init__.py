"""The only package that uses a live torch; torch is imported inside functions."""
