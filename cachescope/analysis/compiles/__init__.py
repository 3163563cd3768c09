"""What torch compiled and why, and what it recompiled: frames made from the compiles in traces."""
