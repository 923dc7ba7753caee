"""Seeing what a model learned."""
