"""Check that the tags of XML are well-formed."""

from xml.parsers import expat

WRAPPED = "<x>{}</x>"  # makes a document of a fragment, which may have several elements or text outside of elements


def xml_problem(text: str) -> str:
    """Return a message with the first error of an XML document or fragment, or "" if it is well-formed.

    The message includes line and column. Entities are not checked, because the texts of clients contain entities of
    HTML and single ampersands.
    """
    document = text.lstrip().startswith(("<?xml", "<!DOCTYPE"))
    parser = expat.ParserCreate()
    try:
        parser.Parse((text.lstrip() if document else WRAPPED.format(text)).replace("&", "x"), True)
    except expat.ExpatError as error:
        column = error.offset - (0 if document or error.lineno > 1 else WRAPPED.index("{"))
        return f"{expat.ErrorString(error.code)} in line {error.lineno}, column {column + 1}"
    return ""
