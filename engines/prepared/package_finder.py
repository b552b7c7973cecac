"""A package finder that is set up as pip is."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from engines.prepared.cache import ReleaseError
from engines.prepared.packages import is_on, pip_settings

if TYPE_CHECKING:
    from unearth import PackageFinder
    from unearth.fetchers import Fetcher


@contextmanager
def pips_finder() -> Iterator["PackageFinder"]:
    """It looks where pip looks, for any platform. Raises ReleaseError for certificates amiss."""
    from unearth import PackageFinder
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers.sync import PyPIClient

    settings = pip_settings()
    index_urls = [settings.get("index-url") or PackageFinder().sources[0]["url"]]
    index_urls += settings.get("extra-index-url", "").split()
    if is_on(settings.get("no-index", "")):
        index_urls = []
    links = settings.get("find-links", "").split()
    cert = settings.get("cert")
    try:
        verify = ssl.create_default_context(cafile=cert) if cert else True
    except OSError as error:
        raise ReleaseError(
            f"the certificates {cert} cannot be read ({error}); correct pip's setting cert"
        ) from None
    with PyPIClient(
        trusted_hosts=settings.get("trusted-host", "").split(),
        verify=verify,
        timeout=float(settings.get("timeout") or settings.get("default-timeout") or 15),
        follow_redirects=True,
    ) as session:
        session.auth = MultiDomainBasicAuth(prompting=False, index_urls=index_urls)
        yield PackageFinder(
            cast("Fetcher", session),
            index_urls=index_urls,
            find_links=[each for each in links if "://" in each or Path(each).exists()],
            # Only Python files are used: any platform's wheel will do.
            ignore_compatibility=True,
        )


def network_errors() -> tuple[type[Exception], ...]:
    """What the finder raises where a connection fails."""
    from unearth import preparer

    # Of the HTTP client that this version of unearth uses.
    return preparer.HTTPErrors
