"""Figures, tables and one self-contained page for finished runs."""

from headscope.report.write import report as report
