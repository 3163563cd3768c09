"""What people read: text, HTML, JSON and Parquet made from a Scope. Nothing here judges."""
