"""What `gcbench explain` knows and what a trial has stamped, as files that other programs open."""
