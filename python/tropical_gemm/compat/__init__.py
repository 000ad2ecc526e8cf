"""Surfaces of other packages, for users who come from them."""
