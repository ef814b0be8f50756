"""Realistic files of HTML and XML: pages, feeds, resources of programs, .xliff and .tmx."""

from collections.abc import Iterable
from html import escape

from tests.text.realistic.prose import FRENCH, GERMAN, OTHERS, Prose

PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="


def html_files(prose: Prose, xhtml: bool = False) -> Iterable[bytes]:
    """Ten pages; with `xhtml`, well-formed ones."""
    p = prose

    def text() -> str:
        return escape(p.sentence(), quote=False)

    def page(body: str, head: str = "", codec: str = "utf-8") -> bytes:
        if xhtml:
            opening = f'<?xml version="1.0" encoding="{codec}"?>\n<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en">'
            head = f"<title>{p.title()}</title>{head}"
        else:
            opening = '<!DOCTYPE html>\n<html lang="en">'
            head = f'<meta charset="{codec}"><title>{p.title()}</title>{head}'
        return f"{opening}\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n".encode(codec, "xmlcharrefreplace")

    yield page(
        f"<h1>{p.title()}</h1>\n<p>{text()} <b>{text()}</b> and <a href='x.html' title='Go to the next page'>a link</a>.</p>\n<p>{text()}</p>"
    )
    rows = "".join(f"<tr><td>{p.label()}</td><td>{text()}</td><td>{p.number()}</td></tr>" for _ in range(4))
    yield page(
        f'<table border="1"><caption>{p.title()}</caption><thead><tr><th colspan="2">Name</th><th>Price</th></tr></thead><tbody>{rows}</tbody></table>'
    )
    close = "</li>" if xhtml else ""
    yield page(
        f"<ul><li>{text()}{close}<li>{text()}<ol><li>Nested <i>item</i>{close}<li>{text()}{close}</ol>{close}</ul><dl><dt>Term</dt><dd>{text()}</dd></dl>"
    )
    yield page(
        f'<form action="/go"><label for="a">User name</label><input id="a" placeholder="Enter your name" value="kept" /><button title="Send it">Send</button>'
        f'<select><option value="1" selected="selected">One</option><option>Two</option></select><textarea rows="2">kept text</textarea></form><p>{text()}</p>'
    )
    yield page(
        f'<figure><img src="{PIXEL}" alt="A dog in the garden" /><figcaption>{text()}</figcaption></figure><p>{text()}<br />{text()}<sup><a href="#n1">1</a></sup></p><hr /><p id="n1">1 {text()}</p>'
    )
    script = (
        "<script>//<![CDATA[\nif (a < b) { alert('kept'); }\n//]]></script>"
        if xhtml
        else "<script>if (a < b) { alert('<p>kept</p>'); }</script>"
    )
    yield page(
        f"<p>{text()}</p><!-- a <b>comment</b> --><pre>kept  code\n  here</pre><p>Use <code>git commit</code> and <kbd>Enter</kbd>.</p>{script}",
        "<style>p > b { color: red }</style>",
    )
    yield page(
        f'<p lang="de">{GERMAN[0]}</p><p translate="no">Kept Name</p><p>Call <span class="notranslate">Acme Corp</span> today.</p><p dir="rtl">{OTHERS[3]}</p><p>{OTHERS[1]} {OTHERS[5]}</p>'
    )
    named = "&#160;&#8211; &#169; 2024" if xhtml else "&nbsp;&ndash; &copy; 2024"
    yield page(
        f"<p>Tom &amp; Anna{named} &lt;here&gt; &#x20AC; 5 &quot;yes&quot;</p><p><ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby> is a sign.</p><p>H<sub>2</sub>O and E=mc<sup>2</sup></p>"
    )
    yield page(f"<p>Café, naïve and Zoë live here.</p><p>{text()}</p>", codec="iso-8859-1").replace(b"\n", b"\r\n")
    loose = (
        ""
        if xhtml
        else f"<p>{text()}<p>{text()}<BR>Loose <B>tags<I>here</B></I><div>Text directly in a block<p>and a paragraph</div>"
    )
    yield page(
        f'<nav aria-label="Main menu"><a href="/">Home</a> | <a href="/a">About us</a></nav><article><header><h2>{p.title()}</h2></header><p><strong><em>Nested</em> formats</strong> in a text, {text()}</p><details><summary>More</summary><p>{text()}</p></details></article>{loose}<svg width="10" height="10"><title>Kept</title><circle r="4" /></svg>'
    )


def xml_files(prose: Prose) -> Iterable[bytes]:
    p = prose

    def text() -> str:
        return escape(p.sentence(), quote=False)

    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f"{head}<book><title>{p.title()}</title><chapter id='1'><para>{text()} <b>{text()}</b></para><para>{text()}</para></chapter></book>\n".encode()
    items = "".join(
        f"<item><title>{p.title()}</title><link>https://example.org/{n}</link><description><![CDATA[<p>{p.plain()}</p>]]></description></item>"
        for n in range(3)
    )
    yield f'{head}<rss version="2.0"><channel><title>{p.title()}</title>{items}</channel></rss>'.encode()
    yield f"""{head}<!DOCTYPE article PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "docbookx.dtd" [
<!ENTITY product "Acme Server">
]>
<article lang="en"><title>{p.title()}</title><para>Install &product; with <command>make install</command>. {text()}</para>
<itemizedlist><listitem><para>{text()}</para></listitem></itemizedlist><programlisting>kept = 1</programlisting></article>
""".encode()
    yield f"""{head}<?xml-stylesheet href="a.css"?>
<concept id="c"><title>{p.title()}</title><conbody><p>{text()} <xref href="b.dita"/> and <ph>a phrase</ph>.</p><note type="tip">{text()}</note></conbody></concept>""".encode()
    yield f'<?xml version="1.0" encoding="UTF-16"?>\n<a><b>{text()}</b><c>{OTHERS[0]}</c></a>'.encode("utf-16")
    yield f'<?xml version="1.0" encoding="ISO-8859-1"?>\n<a><b>Café</b><b>{p.plain()}</b></a>'.encode("latin-1")
    yield f'{head}<x:doc xmlns:x="urn:x" xmlns:its="http://www.w3.org/2005/11/its"><x:p its:translate="no">Kept</x:p><x:p>{text()}<x:br/>{text()}</x:p><x:empty/><x:p xml:space="preserve">  Two  spaces </x:p></x:doc>'.encode()
    yield f"{head}<!-- comment -->\n<menu>\n  <food price='5.95'>\n    <name>Waffles</name>\n    <description>{text()}</description>\n    <calories>650</calories>\n  </food>\n</menu>\n".replace(
        "\n", "\r\n"
    ).encode("utf-8-sig")
    yield f'{head}<ts language="de"><message><source>Open &amp;file</source><translation type="unfinished"></translation></message><message><source>{text()}</source></message></ts>'.encode()
    yield f"{head}<speak>{text()} <break time='1s'/> <emphasis level='strong'>Really</emphasis>, &#8220;{p.plain()}&#8221; &gt; 3.</speak>".encode()


def android_files(prose: Prose) -> Iterable[bytes]:
    p = prose

    def resources(body: str) -> bytes:
        return f'<?xml version="1.0" encoding="utf-8"?>\n<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">\n{body}\n</resources>\n'.encode()

    yield resources("\n".join(f'    <string name="label_{n}">{label}</string>' for n, label in enumerate(p.labels(8))))
    yield resources(
        '<plurals name="files"><item quantity="one">%d file</item><item quantity="other">%d files</item></plurals>\n<string-array name="days"><item>Monday</item><item>Tuesday</item></string-array>'
    )
    yield resources(
        '<string name="a">It\\\'s <b>bold</b> and <i>italic</i> text</string><string name="b">\\"Quoted\\" \\u00e9 line\\nnext line</string>'
    )
    yield resources(
        '<string name="app" translatable="false">Acme</string><string name="hi">Hello, <xliff:g id="name" example="Anna">%1$s</xliff:g>! You have %2$d messages.</string>'
    )
    yield resources(
        '<string name="html"><![CDATA[Read the <a href="https://example.org">terms of use</a> now.]]></string><string name="esc">&lt;b&gt;Bold&lt;/b&gt; text</string>'
    )
    yield resources(
        f'<!-- A comment for translators -->\n<string name="long">\n        {escape(p.plain())}\n        {escape(p.plain())}\n    </string>\n<string name="ref">@string/other</string><string name="q">\\?attr</string>'
    )
    yield resources(
        '<color name="red">#ff0000</color><dimen name="d">12dp</dimen><bool name="b">true</bool><string name="s">Some text</string><item name="i" type="id"/>'
    )
    yield resources(
        '<string name="quoted">"  Two  spaces  "</string><string name="at">\\@home</string><string name="pct" formatted="false">100% of the files</string><string name="empty"></string><string name="none"/>'
    )
    yield b"\xef\xbb\xbf" + resources(
        f'<string name="a">{OTHERS[0]}</string><string name="b">{GERMAN[0]}</string><string name="c">Done {OTHERS[5]}</string>'
    ).replace(b"\n", b"\r\n")
    yield resources(
        '<string name="link">See <a href="https://example.org">our page</a> &amp; more\\u2026</string><string-array name="x" translatable="false"><item>Kept</item></string-array><string name="ann">A <annotation font="title">styled</annotation> word</string>'
    )


def resx_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    head = """<?xml version="1.0" encoding="utf-8"?>
<root>
  <xsd:schema id="root" xmlns="" xmlns:xsd="http://www.w3.org/2001/XMLSchema"><xsd:element name="data"/></xsd:schema>
  <resheader name="resmimetype"><value>text/microsoft-resx</value></resheader>
  <resheader name="version"><value>2.0</value></resheader>
"""

    def data(name: str, value: str, more: str = "", comment: str = "") -> str:
        note = f"\n    <comment>{comment}</comment>" if comment else ""
        return f'  <data name="{name}" {more}>\n    <value>{value}</value>{note}\n  </data>\n'

    space = 'xml:space="preserve"'

    def resx(*entries: str) -> bytes:
        return f"{head}{''.join(entries)}</root>".encode()

    yield resx(*(data(f"Label{n}", label, space) for n, label in enumerate(p.labels(8))))
    yield resx(
        data("Title", p.title(), space, "The title of the window"),
        data("Text", escape(p.paragraph(), quote=False), space),
    )
    yield resx(
        data("Format", "Page {0} of {1:N2}, {2}", space),
        data("Lines", "First line.\nSecond line.\n\nThird line.", space),
    )
    yield resx(
        data(
            "Icon",
            "AAAA",
            'type="System.Drawing.Bitmap" mimetype="application/x-microsoft.net.object.bytearray.base64"',
        ),
        data("Name", "The name", space),
    )
    yield resx(
        data("button1.Text", "&amp;Save", space),
        data("button1.Size", "75, 23", 'type="System.Drawing.Size, System.Drawing"'),
        data("&gt;&gt;button1.Name", "button1", space),
    )
    yield resx(
        data("Html", "&lt;b&gt;Bold&lt;/b&gt; and &lt;a href=&quot;x&quot;&gt;a link&lt;/a&gt;", space),
        data("Quote", 'She said "no".', space),
    )
    yield b"\xef\xbb\xbf" + resx(
        data("Langs", " ".join(OTHERS), space), data("De", GERMAN[0], space), data("En", p.plain(), space)
    ).replace(b"\n", b"\r\n")
    yield resx(
        data("Spaces", "  Leading and trailing  ", space),
        data("Empty", "", space),
        data("Dash", "-", space),
        '  <data name="None"><value/></data>\n',
    )
    yield resx(
        "  <!-- a comment -->\n",
        data("CData", "<![CDATA[Text with <b>tags</b> inside]]>", space),
        '  <metadata name="x"><value>kept</value></metadata>\n',
        '<assembly alias="System" name="System"/>',
    )
    yield resx(*(data(f"Message_{n}", escape(p.sentence(), quote=False), space) for n in range(15)))


def xliff_files(prose: Prose) -> Iterable[bytes]:
    """Ten files: seven of version 1.2 and three of version 2."""
    p = prose

    def text() -> str:
        return escape(p.sentence(), quote=False)

    def one(body: str, more: str = "") -> bytes:
        return f'''<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a.txt" source-language="en" target-language="de" datatype="plaintext"{more}>
    <body>
{body}
    </body>
  </file>
</xliff>
'''.encode()

    def unit(number: int, inside: str, more: str = "") -> str:
        return f'      <trans-unit id="{number}"{more}>\n        {inside}\n      </trans-unit>\n'

    def two(body: str) -> bytes:
        return f"""<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">
 <file id="f1">
{body}
 </file>
</xliff>
""".encode()

    yield one("".join(unit(n, f"<source>{text()}</source>") for n in range(6)))
    yield one(
        "".join(
            unit(n, f'<source>{text()}</source>\n        <target state="new"/>\n        <note>A note</note>')
            for n in range(4)
        )
    )
    yield one(
        unit(1, '<source>Press <g id="1">the <x id="2"/> button</g> now.</source>')
        + unit(
            2,
            "<source>A <bpt id='1'>&lt;b&gt;</bpt>bold<ept id='1'>&lt;/b&gt;</ept> word<ph id='3'>&lt;br/&gt;</ph> here.</source>",
        )
    )
    yield one(
        unit(1, '<source>Done</source>\n        <target state="translated">Fertig</target>')
        + unit(2, "<source>Not done</source>\n        <target></target>")
        + unit(3, "<source>Kept</source>", ' translate="no"')
    )
    yield one(
        unit(
            1,
            '<source>One. Two.</source>\n        <seg-source><mrk mid="0" mtype="seg">One day.</mrk> <mrk mid="1" mtype="seg">Two days.</mrk></seg-source>',
        )
    )
    yield one(
        '<group id="g"><context-group purpose="location"><context context-type="sourcefile">a.ts</context></context-group>'
        + unit(
            1,
            '<source>Hello <x id="INTERPOLATION" equiv-text="{{ name }}"/>!</source><alt-trans><source>Hi</source><target>Hallo</target></alt-trans>',
        )
        + unit(2, "<source>{VAR_PLURAL, plural, =1 {one file} other {many files}}</source>")
        + "</group>"
    )
    yield one(
        unit(1, f"<source xml:space='preserve'>  {OTHERS[0]}  </source>")
        + unit(2, "<source>A &amp; B &lt; C</source>")
        + unit(3, "<source/>")
        + unit(4, "<source>&#8220;Yes&#8221;</source>")
    ).replace(b"\n", b"\r\n")
    yield two(
        "".join(
            f'  <unit id="{n}">\n   <notes><note>A note</note></notes>\n   <segment>\n    <source>{text()}</source>\n   </segment>\n  </unit>\n'
            for n in range(5)
        )
    )
    yield two(
        '  <unit id="1">\n   <originalData><data id="d1">&lt;b></data></originalData>\n   <segment state="initial">\n    <source>A <pc id="1" dataRefStart="d1">bold</pc> word<ph id="2"/> here.</source>\n   </segment>\n   <ignorable><source> </source></ignorable>\n   <segment><source>Another one.</source></segment>\n  </unit>'
    )
    yield two(
        '  <group id="g"><unit id="1" translate="no"><segment><source>Kept</source></segment></unit>\n  <unit id="2"><segment state="translated"><source>Done</source><target>Fertig</target></segment><segment><source>Text with a <mrk id="m1" type="term">term</mrk> and <sc id="1"/>code<ec startRef="1"/>.</source></segment></unit></group>'
    )


def tmx_files(prose: Prose) -> Iterable[bytes]:
    p = prose

    def tmx(body: str, head: str = '<?xml version="1.0" encoding="UTF-8"?>\n', source: str = "en") -> bytes:
        header = f'<header creationtool="x" creationtoolversion="1" segtype="sentence" o-tmf="x" adminlang="en" srclang="{source}" datatype="plaintext"/>'
        return f'{head}<tmx version="1.4">\n  {header}\n  <body>\n{body}\n  </body>\n</tmx>\n'.encode()

    def text() -> str:
        return escape(p.sentence(), quote=False)

    def unit(*variants: tuple[str, str], more: str = "", inside: str = "") -> str:
        lines = "".join(
            f'      <tuv xml:lang="{code}">\n        <seg>{seg}</seg>\n      </tuv>\n' for code, seg in variants
        )
        return f"    <tu{more}>\n{inside}{lines}    </tu>\n"

    yield tmx("".join(unit(("en", text())) for _ in range(6)))
    yield tmx("".join(unit(("en-US", text()), ("fr-FR", FRENCH[n])) for n in range(3)), source="en-US")
    yield tmx(unit(("en", "The station"), ("de", "Der Bahnhof")) + unit(("en", text()), ("fr", FRENCH[1])))
    yield tmx(
        unit(("en", 'A <bpt i="1">&lt;b&gt;</bpt>bold<ept i="1">&lt;/b&gt;</ept> word<ph x="1">&lt;br/&gt;</ph>.'))
        + unit(("en", "A <hi type='x'>marked</hi> word <it pos='begin'>&lt;i&gt;</it>here."))
    )
    yield tmx(
        unit(
            ("en", text()),
            more=' tuid="1" creationdate="20240503T120000Z" usagecount="3"',
            inside='      <note>A note</note>\n      <prop type="client">Acme</prop>\n',
        )
    )
    yield tmx(
        "".join(unit(("EN", text())) for _ in range(3)),
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n',
        source="*all*",
    )
    yield tmx(unit(("de", GERMAN[0]), ("en", "The station is behind the church.")) + unit(("fr", FRENCH[0]))).replace(
        b"\n", b"\r\n"
    )
    yield b"\xff\xfe" + tmx(
        "".join(unit(("en", text())) for _ in range(4)), '<?xml version="1.0" encoding="UTF-16"?>\n'
    ).decode().encode("utf-16-le")
    yield tmx(
        "<tu><tuv xml:lang='en'><seg>All on one line.</seg></tuv></tu><tu><tuv xml:lang='en'><seg/></tuv></tu><tu><tuv lang='en'><seg>Old attribute.</seg></tuv></tu>"
    )
    yield tmx(
        unit(("en", "A &amp; B &lt; C, &quot;yes&quot; &#8211; no"))
        + unit(("en", "First line.\nSecond line."))
        + unit(("en", OTHERS[5]))
    )
