"""What the scripts have in common as programs of a shell."""
