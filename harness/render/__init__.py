"""A report as people read it: on a terminal, as Markdown, as a page, of whatever kind it is."""
