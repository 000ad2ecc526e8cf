"""What is computed by many semiring products."""
