"""What others have claimed, what was measured of it, and what that says of the claim."""
