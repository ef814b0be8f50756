"""Downloads: the header that names the file of an answer."""

import unicodedata
from urllib.parse import quote

# A quoted string of ASCII: quotes and backslashes would need escapes, and clients read percent signs differently.
_UNQUOTABLE = frozenset('"\\%/')


def attachment(name: str) -> dict[str, str]:
    """Return the header of a download of this name, which RFC 6266 gives twice.

    `filename*` has the name without invisible characters, one of which can show `exe.txt` for `txt.exe`, and `filename`
    has an ASCII form for clients that read no other, such as curl.
    """
    name = "".join(char for char in name if unicodedata.category(char) not in ("Cc", "Cf"))
    plain = "".join(char if char.isascii() and char.isprintable() and char not in _UNQUOTABLE else "_" for char in name)
    return {"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=utf-8''{quote(name)}"}
