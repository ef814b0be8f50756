"""Fixed everyday phrases, which are training data only.

No phrase may be a sentence that the grammar generates, because such a sentence may be in a test set.
"""

NAMES = ("Anna", "Thomas", "Maria", "Peter", "Laura", "Paul", "Julia", "Felix", "Emma", "Lukas")

# english | german; {name} stands for each of NAMES
PHRASES = """
Hello!|Hallo!
Hello.|Hallo.
Hello, {name}!|Hallo, {name}!
Good morning!|Guten Morgen!
Good morning.|Guten Morgen.
Good morning, {name}.|Guten Morgen, {name}.
Good evening!|Guten Abend!
Good evening.|Guten Abend.
Good night.|Gute Nacht.
Goodbye!|Auf Wiedersehen!
Goodbye.|Auf Wiedersehen.
See you soon.|Bis bald.
See you tomorrow.|Bis morgen.
Yes.|Ja.
No.|Nein.
Yes, please.|Ja, bitte.
No, thank you.|Nein, danke.
Please.|Bitte.
Thank you.|Danke.
Thank you!|Danke!
Thank you very much.|Vielen Dank.
You are welcome.|Gern geschehen.
Excuse me.|Entschuldigung.
I am sorry.|Es tut mir leid.
How are you?|Wie geht es Ihnen?
I am fine, thank you.|Es geht mir gut, danke.
What is your name?|Wie heißen Sie?
My name is {name}.|Ich heiße {name}.
Nice to meet you.|Es freut mich, Sie kennenzulernen.
Where are you from?|Woher kommen Sie?
I am from England.|Ich komme aus England.
Do you speak English?|Sprechen Sie Englisch?
Do you speak German?|Sprechen Sie Deutsch?
I do not speak German.|Ich spreche kein Deutsch.
I speak a little German.|Ich spreche ein wenig Deutsch.
I do not understand.|Ich verstehe nicht.
Could you repeat that, please?|Könnten Sie das bitte wiederholen?
Can you help me?|Können Sie mir helfen?
Help!|Hilfe!
I am lost.|Ich habe mich verlaufen.
What time is it?|Wie spät ist es?
How much does this cost?|Wie viel kostet das?
How much is it?|Wie viel kostet es?
The bill, please.|Die Rechnung, bitte.
Cheers!|Prost!
Enjoy your meal!|Guten Appetit!
Have a good trip!|Gute Reise!
Good luck!|Viel Glück!
Happy birthday!|Alles Gute zum Geburtstag!
Where is the toilet?|Wo ist die Toilette?
Where is the station?|Wo ist der Bahnhof?
What is this?|Was ist das?
"""


def everyday() -> list[tuple[str, str]]:
    """Return all phrases as (English, German). A phrase that contains `{name}` is returned with each of NAMES."""
    rows = [line.split("|") for line in PHRASES.split("\n") if line]
    return [
        (english.format(name=name), german.format(name=name))
        for english, german in rows
        for name in (NAMES if "{name}" in english else NAMES[:1])
    ]
