"""Advice about engines, models and GPUs."""
