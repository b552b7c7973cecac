"""Names of pages: safe in any file system and any address, each of one thing."""

import re
from hashlib import sha256


class Names:
    """Hands out one name for each text, the same whenever the same texts come in."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}

    def of(self, text: str) -> str:
        """Lower-case ASCII, with a piece of a hash where letters had to go or a name is taken."""
        plain = re.sub(r"[^a-z0-9_.-]+", "-", text.lower()).strip("-.")[:80]
        name = plain if plain and plain == text else f"{plain}-{_hash(text)}".lstrip("-")
        if self._taken.setdefault(name, text) != text:
            name = f"{plain}-{_hash(text)}"
            self._taken[name] = text
        return name


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
