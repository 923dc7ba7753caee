"""Pretraining: from text to a biLM."""
