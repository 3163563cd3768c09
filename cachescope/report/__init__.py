"""What people read: text, HTML, JSON and Parquet, made of answers. Nothing here judges or computes."""
