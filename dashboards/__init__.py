"""One static site of all that was measured: `dashboards.site.build_site`."""
