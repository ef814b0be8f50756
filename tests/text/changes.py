import re


def before_and_after(marked: str) -> tuple[str, str]:
    """Return the two texts of a marked one: `a ⟨b→c⟩ d` stands for `a b d` and `a c d`."""
    before, after = (re.sub("⟨([^⟨⟩]*)→([^⟨⟩]*)⟩", rf"\{number}", marked) for number in (1, 2))
    return before, after
