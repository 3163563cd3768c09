"""What people read: text, HTML, JSON and Parquet, made from answers. Nothing here judges or computes."""
