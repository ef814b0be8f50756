"""Downloads: the header that names the file of an answer."""

import unicodedata
from urllib.parse import quote

_UNQUOTABLE = frozenset('"\\%/')  # quotes and backslashes need escapes, and clients read percent signs differently


def attachment(name: str) -> dict[str, str]:
    """Return the header that names a download, once in ASCII for clients that read no other form (RFC 6266).

    Invisible characters leave the name: U+202E can show `exe.txt` for `txt.exe`.
    """
    name = "".join(char for char in name if unicodedata.category(char) not in ("Cc", "Cf"))
    plain = "".join(char if char.isascii() and char.isprintable() and char not in _UNQUOTABLE else "_" for char in name)
    return {"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=utf-8''{quote(name, safe='')}"}
