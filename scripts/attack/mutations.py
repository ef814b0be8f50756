"""Structure-aware mutations of documents: zip members, XML trees, JSON, and the tokens of text formats.

A mutation is a function of a random generator alone.
"""

import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable, Collection
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from lxml import etree

SEEDS = Path(__file__).parent / "seeds"
MAX_REPETITIONS, MAX_DEPTH, MAX_MUTATIONS = 3000, 300, 4
MAX_BYTES = 400_000  # of a mutated document
MAX_REPEATED = 5 * MAX_BYTES  # characters that one mutation adds: repetitions of repetitions multiply

ODD_BYTES = (
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\r\n", b"\x85", b"\x1b", b"\xed\xa0\x80", b"\xf4\x90"),
)
ODD_TEXTS = "\u2028\u2029\u202e\u200d\ufeff\ufffe\u0301\x0b\x0c\x1c\xa0\U0010ffff"
CODECS = ("utf-16", "utf-16-le", "utf-8-sig", "latin-1", "cp1252", "shift_jis", "gb18030", "utf-7", "punycode")
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]+?")

_MARKUP = (
    "< > </ /> <!-- --> <![CDATA[ ]]> <! <? ?> & &# &#x &amp; &nosuch; ' \" = <b> </b> <p> <br> <a> </p> <td> <tr>"
)
_FRAGMENTS = {
    "html": f"{_MARKUP} <script> </script> <style> <pre> <textarea> <template> <svg> <math> <select> <option> <li>"
    ' <plaintext> translate="no" <meta␣charset=utf-16> <p␣translate=no> <title>',
    "xml": f"{_MARKUP} <!DOCTYPE <!ENTITY &product; xml:space='preserve' <?xml <x:b> </x:b> xmlns:x='' %a;",
    "xliff": f"{_MARKUP} <target> <target/> </target> <source> </source> <seg-source> <mrk> <g> <x/> <trans-unit>"
    " <segment> <sc/>",
    "tmx": f"{_MARKUP} <tu> </tu> <tuv␣xml:lang='en'> <tuv␣xml:lang='de'> </tuv> <seg> </seg> <bpt␣i='1'> <ept/> <hi>"
    " <sub> <note/> <!DOCTYPE",
    "srt": "--> 00:00:01,000 \n\n \r - {\\an8} <i> </i> <font> 1\n 00:00:01,000␣-->␣00:00:02,000\n",
    "vtt": "--> 00:01.000 \n\n WEBVTT NOTE STYLE REGION <c> <v <00:01.500> &lt; { } 00:01.000␣-->␣00:02.000\n",
    "md": "* ** _ __ ` ``` ~~~ [ ] ( ) [a]( ![ [^ [^1]: <b> < > > | |---| - + 1. # \\ \t \n\n --- === ~~ <!-- & {#",
    "po": 'msgid msgstr msgid_plural msgctxt msgstr[0] msgstr[9] # #~ #, #| #. " \\" \\n \\ "a"\n Content-Type:'
    " charset=",
    "json": '{ } [ ] , : " \\ \\u \\ud800 1e999 - null true NaN Infinity "a": // 0x',
    "yaml": "- : ? | > |- >+ |9 & * &a *a ! !!str !!binary --- ... # { } [ ] , \" ' \n \n␣␣ \t %YAML << ~"
    " 0x1 {n,␣plural,␣one␣{",
    "properties": "= : \\ \\u \\u00e4 \\\n # ! \n \r \t {0} '' ' \f",
    "strings": '" = ; /* */ // \\ \\" \\U \n %@',
    "ftl": '= \n \n␣␣␣␣ \n␣␣␣␣. \n␣␣␣␣[ \n␣␣␣*[ { } {␣$n␣-> {␣""␣} -a␣=␣b \na␣=␣b\n # ## \r \t \\ { { } } (',
    "pdf": "Tj TJ T* Td Tm Tf BT ET q Q cm Do re f (a␣dog)␣Tj␣T* (a-)␣Tj␣T* [(a)␣-900␣(b)]␣TJ 90␣0␣Td 0␣-14␣Td "
    "/F␣24␣Tf 1␣0␣0␣1␣72␣700␣Tm 0␣1␣-1␣0␣90␣90␣Tm << >> [ ] ( ) 0␣R obj endobj stream endstream xref trailer "
    "/Length /Kids /Filter /FlateDecode -1 999999999999 1e38 <00ff> % \\",
    "csv": ', ; \t | " "" \n \r\n \'',
    "txt": "\n \r \t \x0c . ! ? “ ” ( ) …",
}
FRAGMENTS = {kind: [part.replace("␣", " ") for part in parts.split(" ")] for kind, parts in _FRAGMENTS.items()}
"""Texts with a meaning in a format; those of markup are in the text of its tokens, too."""


@dataclass
class Mutator:
    """Source of mutations; `steps` says which it drew."""

    random: Random
    steps: list[str] = field(default_factory=list)

    def repetitions(self, limit: int = MAX_REPETITIONS) -> int:
        """Draw a number between 1 and `limit`, small ones as often as large ones."""
        return max(1, int(limit ** self.random.random()))

    def bounded(self, count: int, size: int) -> int:
        """Return `count`, or the smaller number of repetitions of `size` characters that MAX_REPEATED allows."""
        return min(count, max(1, MAX_REPEATED // max(1, size)))

    def note(self, step: str, *details: object) -> None:
        self.steps.append(" ".join([step, *(repr(detail)[:60] for detail in details)]))

    def text(self, text: str, kind: str) -> str:
        """Mutate a text as a sequence of words, spaces and signs."""
        tokens = _TOKEN.findall(text)
        fragments = FRAGMENTS[kind]
        for _ in range(self.random.randint(1, MAX_MUTATIONS)):
            at = self.random.randrange(len(tokens) + 1)
            part = tokens[at : at + 1 + int(10 ** (self.random.random() * 1.5))]
            match self.random.randrange(8):
                case 0:
                    del tokens[at : at + len(part)]
                    self.note("delete", "".join(part))
                case 1:
                    other = self.random.randrange(len(tokens) + 1)
                    tokens[other:other] = part
                    self.note("copy", "".join(part))
                case 2:
                    odd = self.random.choice(ODD_TEXTS) * self.repetitions(50)
                    tokens.insert(at, odd)
                    self.note("insert", odd)
                case 3:
                    tokens.insert(at, self.random.choice(fragments))
                    self.note("insert", tokens[at])
                case 4 | 5:
                    repeated = "".join(self.random.choices(fragments, k=self.random.randint(1, 3)))
                    tokens.insert(at, repeated * (count := self.bounded(self.repetitions(), len(repeated))))
                    self.note("repeat", repeated, count)
                case 6 | 7:
                    repeated = "".join(part)
                    tokens.insert(at, repeated * (count := self.bounded(self.repetitions(), len(repeated))))
                    self.note("repeat", repeated, count)
        return "".join(tokens)

    def damage(self, content: bytes) -> bytes:
        """Mutate bytes: damaged files, wrong encodings."""
        at = self.random.randrange(len(content) + 1)
        match self.random.randrange(4):
            case 0:
                self.note("truncate", at)
                return content[:at]
            case 1:
                odd = self.random.choice(ODD_BYTES) * self.repetitions(20)
                self.note("insert", at, odd)
                return content[:at] + odd + content[at:]
            case 2:
                changed = bytearray(content)
                for _ in range(self.random.randint(1, 5)):
                    if changed:
                        changed[self.random.randrange(len(changed))] = self.random.randrange(256)
                self.note("change bytes")
                return bytes(changed)
            case _:
                codec = self.random.choice(CODECS)
                self.note("encode", codec)
                return content[:20_000].decode("utf-8", "replace").encode(codec, "replace")

    def tree(self, content: bytes) -> bytes:
        """Mutate an XML tree: copy, nest, move, rename and delete elements; texts and attributes."""
        try:
            root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, huge_tree=True))
        except etree.XMLSyntaxError:
            return content
        for _ in range(self.random.randint(1, MAX_MUTATIONS)):
            elements = [element for element in root.iter() if isinstance(element.tag, str)]
            one, other = self.random.choice(elements), self.random.choice(elements)
            parent = one.getparent()
            match self.random.randrange(7):
                case 0 if parent is not None:
                    count = self.repetitions(MAX_REPETITIONS if len(one) < 5 else 100)
                    count = self.bounded(count, len(etree.tostring(one)))
                    for _ in range(count):
                        parent.insert(parent.index(one), deepcopy(one))
                    self.note("copies of", one.tag, count)
                case 1:
                    count = self.repetitions(MAX_DEPTH)
                    inner = one
                    for _ in range(count):
                        inner = etree.SubElement(inner, other.tag, dict(other.attrib))
                    inner.text = "deep"
                    self.note("nest", other.tag, "in", one.tag, count)
                case 2 if parent is not None and one not in list(other.iterancestors()) and one is not other:
                    other.append(one)
                    self.note("move", one.tag, "into", other.tag)
                case 3:
                    one.tag = other.tag
                    self.note("rename to", other.tag)
                case 4 if parent is not None:
                    parent.remove(one)
                    self.note("delete", one.tag)
                case 5:
                    count = self.repetitions()
                    one.text = self.random.choice(["a ", "dog. ", "\u2028", "\xa0", "中", "&<"]) * count
                    self.note("text of", one.tag, count)
                case _:
                    for key in list(other.attrib):
                        one.set(
                            key, self.random.choice(["", "no", "-1", "9" * self.repetitions(50), other.get(key) or ""])
                        )
                    self.note("attributes of", other.tag, "at", one.tag)
        return bytes(etree.tostring(root))

    def json(self, content: bytes) -> bytes:
        """Mutate a JSON value: nest, repeat, replace."""
        value: Any = json.loads(content)
        before = after = ""
        for _ in range(self.random.randint(1, MAX_MUTATIONS)):
            count = self.repetitions()
            match self.random.randrange(4):
                case 0:
                    opening, closing = self.random.choice([("[", "]"), ('{"a":', "}"), ('[1,{"":', "}]")])
                    before, after = before + opening * count, closing * count + after
                    self.note("nest", opening, count)
                case 1:
                    value = [value, *(["a dog", 1, None, ""] * count)]
                    self.note("items", count)
                case 2:
                    value = {"k": value, **{f"k{n}": '"\\\n' * 3 for n in range(count)}}
                    self.note("members", count)
                case _:
                    value = [value, self.random.choice(['\\"', "\\", "a ", "\ud800", "\u2028"]) * count]
                    self.note("string", count)
        text = before + json.dumps(value, ensure_ascii=self.random.random() < 0.5) + after
        return text.encode("utf-8", "surrogatepass")

    def archive(self, content: bytes) -> bytes:
        """Mutate the members of a zip file: their XML, names and order."""
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        for _ in range(self.random.randint(1, MAX_MUTATIONS)):
            at = self.random.randrange(len(members))
            if self.random.random() < 0.6:
                at = next(
                    number
                    for number, (name, _) in enumerate(members)
                    if name.endswith(("document.xml", "content.xml", ".xhtml")) or number == at
                )
            name, part = members[at]
            match self.random.randrange(8):
                case 0 if len(members) > 1:
                    del members[at]
                    self.note("delete member", name)
                case 1:
                    members.append((name if self.random.random() < 0.5 else f"word/header{at}.xml", part))
                    self.note("copy member", name)
                case 2:
                    members[at] = self.random.choice(members)[0], part
                    self.note("rename member", name)
                case 3:
                    members[at] = name, self.text(part.decode("utf-8", "replace"), "xml").encode()
                case _:
                    members[at] = name, self.tree(part)
        file = io.BytesIO()
        with (
            warnings.catch_warnings(action="ignore"),  # two members of one name are intended
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            for name, part in members:
                archive.writestr(name, part)
        return file.getvalue()


_TREES = ("xml", "xhtml", "xliff", "xlf", "resx", "tmx")
_KINDS = {"xhtml": "html", "xlf": "xliff", "resx": "xml", "arb": "json", "tsv": "csv"}
"""Formats whose texts have the fragments of another format."""


@dataclass(frozen=True)
class MutatedDocument:
    """File name, content, and what was done to the seed."""

    name: str
    content: bytes
    steps: tuple[str, ...]


def seeds(suffixes: Collection[str] = ()) -> dict[str, bytes]:
    """Return the stored documents by name, one of each format, or of the formats with `suffixes` such as "pdf"."""
    paths = (path for path in sorted(SEEDS.iterdir()) if not suffixes or path.suffix[1:] in suffixes)
    return {path.name: path.read_bytes() for path in paths}


def mutate(documents: dict[str, bytes], key: str) -> MutatedDocument:
    """Return the mutated document that `key`, such as "7/123", determines."""
    mutator = Mutator(Random(key))
    draw = mutator.random
    name = draw.choice(sorted(documents))
    suffix = name.rpartition(".")[2]
    kind = _KINDS.get(suffix, suffix)
    ways: list[Callable[[bytes], bytes]]
    if suffix in ("docx", "epub", "odt", "pptx", "xlsx"):
        ways = [mutator.archive]
    else:
        ways = [lambda data: mutator.text(data.decode("utf-8", "replace"), kind).encode("utf-8", "surrogatepass")]
        ways += [mutator.tree] if suffix in _TREES else [mutator.json] if suffix in ("json", "arb") else []
    content = draw.choice(ways)(documents[name])
    if draw.random() < 0.15:
        content = mutator.damage(content)
    return MutatedDocument(name, content[:MAX_BYTES], tuple(mutator.steps))
