langs = Привет, мир! 你好，世界。 これは本です。 مرحبا بالعالم Καλημέρα κόσμε 👩‍👩‍👧 emoji
de = Der Bahnhof ist hinter der Kirche.
html = A <strong>bold</strong> word and a <a data-l10n-name="link">link</a>
