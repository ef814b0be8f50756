"""Element names of paragraphs in Word documents (.docx)."""

from functools import lru_cache

from mt.text.documents.run_items import RunSchema


@lru_cache
def word_schema(namespace: str) -> RunSchema:
    """Return the names of the elements of WordprocessingML in a namespace in braces."""

    def names(text: str) -> frozenset[str]:
        return frozenset(namespace + name for name in text.split())

    return RunSchema(
        paragraph=f"{namespace}p",
        run=f"{namespace}r",
        properties=f"{namespace}rPr",
        text=f"{namespace}t",
        characters={f"{namespace}noBreakHyphen": "\u2011"},
        wrappers=names("bdo customXml dir hyperlink ins moveTo sdt smartTag"),
        content=f"{namespace}sdtContent",
        transparent=names("ruby rubyBase"),
        field_mark=f"{namespace}fldChar",
        field_type=f"{namespace}fldCharType",
        instruction=f"{namespace}instrText",
        instruction_attribute=f"{namespace}instr",
        fields=names("fldSimple"),
        first=names("customXmlPr fldData pPr sdtEndPr sdtPr smartTagPr"),
        dropped=names("lastRenderedPageBreak proofErr rt rubyPr softHyphen"),
        breaks=names("tab ptab br cr"),
        tabs=names("tab ptab"),
        invisible=names("lang noProof rtl webHidden"),
    )
