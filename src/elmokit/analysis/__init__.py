"""Analyses of what a model has learned."""
