"""What every part of the settings tree is; launch settings, which live with the engines, are the same."""

from engines.section import Section, without_blanks

__all__ = ["Section", "without_blanks"]
