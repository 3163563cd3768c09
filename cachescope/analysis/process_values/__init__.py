"""Values in keys that belong to one process: its rank, host, port, paths, times, addresses of objects, random numbers."""
