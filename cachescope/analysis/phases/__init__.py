"""Where the time of compiling went: events of traces, swept and named."""
