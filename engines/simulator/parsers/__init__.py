"""The engines' incremental tool parsers, re-created from what they put on the wire, with their habits and mistakes."""
