"""What torch compiled and why, and what it compiled again: frames made of what traces record of compiles."""
