"""Readers for the inside of a call, one per way of writing."""
