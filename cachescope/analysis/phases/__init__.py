"""Where compile time went: events of traces, swept and named."""
