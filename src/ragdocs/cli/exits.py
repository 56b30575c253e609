"""What the exit statuses of the commands mean; 0 is success, click itself uses 2."""

NOTHING_FOUND = 1
WRONG_USE = 2
UNUSABLE = 3
"""The index cannot be used."""
