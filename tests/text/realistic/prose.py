"""English text for realistic files, drawn from a seed."""

from random import Random

SENTENCES = (
    "The station is behind the old church.",
    "We moved the meeting to Tuesday, because the room was not free.",
    "Please close the window before you leave.",
    "Where can I buy a ticket for the museum?",
    "The children are playing in the garden with a small dog.",
    "She said: “I will be there at half past seven.”",
    "Don't forget to bring your passport and two photos.",
    "The price rose from 12.50 to 14.90 euros within a year.",
    "If the red light is on, press the button for five seconds.",
    "He works as a teacher & writes books in the evening.",
    "More than 80% of the visitors came by train.",
    "Save the file before you start the program.",
    "My brother has lived in London since 2012.",
    "The water must not be hotter than 60 °C.",
    "Click on the green button to open the next page.",
    "It was raining, so we stayed at home and read.",
    "You can find more information at https://example.org/help.",
    "Is x < 5 or y > 7 in this example?",
    "Thank you for your letter of 3 May.",
    "The new version needs less memory than the old one.",
    "A man in a blue shirt is standing on a ladder.",
    "Breakfast is from 7:00 to 10:30 in the large hall.",
    "Send your questions to Anna Miller (room 214).",
    "The door was open – nobody was in the house.",
)
TITLES = (
    "Opening hours",
    "How to install the program",
    "Our next steps",
    "Questions and answers",
    "The history of the town",
    "Before you begin",
    "Results of the year",
    "Safety",
    "A day at the lake",
    "Tickets and prices",
)
LABELS = (
    "Save",
    "Open file",
    "Settings",
    "Cancel",
    "Search results",
    "New message",
    "Password",
    "Log out",
    "Next page",
    "Send feedback",
    "User name",
    "Delete account",
)
GERMAN = ("Der Bahnhof ist hinter der Kirche.", "Bitte schließen Sie das Fenster.", "Öffnungszeiten")
FRENCH = ("La gare est derrière l’église.", "Fermez la fenêtre, s’il vous plaît.", "Heures d’ouverture")
OTHERS = ("Привет, мир!", "你好，世界。", "これは本です。", "مرحبا بالعالم", "Καλημέρα κόσμε", "👩‍👩‍👧 emoji")


class Prose:
    """Random English text. All of a file follows from its seed."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)

    def sentence(self) -> str:
        return self.random.choice(SENTENCES)

    def plain(self) -> str:
        """Return a sentence without signs that markup escapes."""
        return self.random.choice([text for text in SENTENCES if not set(text) & set("&<>'“”%")])

    def paragraph(self, sentences: int = 3) -> str:
        return " ".join(self.random.sample(SENTENCES, sentences))

    def title(self) -> str:
        return self.random.choice(TITLES)

    def label(self) -> str:
        return self.random.choice(LABELS)

    def labels(self, count: int) -> list[str]:
        return self.random.sample(LABELS, count)

    def number(self, most: int = 1000) -> int:
        return self.random.randint(1, most)
