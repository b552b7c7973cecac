"""Releases of a project from its package index, each made ready to run over one environment."""
