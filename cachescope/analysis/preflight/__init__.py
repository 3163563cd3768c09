"""What the lookups of a pre-flight would come to, from what is stored: none of them was made."""
