"""Measures of tasks: scores from gold and predicted values."""
