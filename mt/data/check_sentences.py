"""Sentences with which int8 is compared with float32 if a model has no calibration text."""

from collections.abc import Mapping, Sequence
from random import Random

SENTENCES: Mapping[str, Sequence[str]] = {
    "en": (
        "Two children are playing with a red ball in the park.",
        "The quarterly report is due on Friday.",
        "Please send me the invoice by the end of the month.",
        "Scientists have found a new species of frog in the rainforest.",
        "I have never been to Japan, but I would like to go next year.",
        "The committee adopted the regulation by 34 votes to 12.",
        "Take one tablet twice a day after meals.",
        "Why didn't you tell me that the train was cancelled?",
        "The old bridge across the river was closed for repairs in 2019.",
        "If the error persists, restart the computer and contact support.",
        "She opened the window because it was too warm in the kitchen.",
        "The company sold 1.5 million cars last year, 8% more than before.",
        "Good morning!",
        "The contract may be terminated by either party with three months' notice.",
        "A man in a blue shirt is standing on a ladder, cleaning a window.",
        "According to Dr. Smith, the results should be read with caution.",
    ),
    "de": (
        "Zwei Kinder spielen im Park mit einem roten Ball.",
        "Der Quartalsbericht ist am Freitag fällig.",
        "Bitte schicken Sie mir die Rechnung bis zum Ende des Monats.",
        "Forscher haben im Regenwald eine neue Froschart entdeckt.",
        "Ich war noch nie in Japan, würde aber nächstes Jahr gern hinfahren.",
        "Der Ausschuss nahm die Verordnung mit 34 gegen 12 Stimmen an.",
        "Nehmen Sie zweimal täglich eine Tablette nach dem Essen.",
        "Warum hast du mir nicht gesagt, dass der Zug ausfällt?",
        "Die alte Brücke über den Fluss war 2019 wegen Bauarbeiten gesperrt.",
        "Guten Morgen!",
        "Der Vertrag kann von jeder Partei mit einer Frist von drei Monaten gekündigt werden.",
        "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
    ),
    "fr": (
        "Deux enfants jouent avec un ballon rouge dans le parc.",
        "Le rapport trimestriel doit être remis vendredi.",
        "Veuillez m'envoyer la facture avant la fin du mois.",
        "Des chercheurs ont découvert une nouvelle espèce de grenouille.",
        "Je ne suis jamais allé au Japon, mais j'aimerais y aller l'année prochaine.",
        "La commission a adopté le règlement par 34 voix contre 12.",
        "Prenez un comprimé deux fois par jour après les repas.",
        "Pourquoi ne m'as-tu pas dit que le train était annulé ?",
        "Le vieux pont sur la rivière a été fermé pour travaux en 2019.",
        "Bonjour !",
        "Un homme en chemise bleue est debout sur une échelle et nettoie une fenêtre.",
    ),
    "es": (
        "Dos niños juegan con una pelota roja en el parque.",
        "El informe trimestral debe entregarse el viernes.",
        "Por favor, envíeme la factura antes de fin de mes.",
        "Los científicos han descubierto una nueva especie de rana en la selva.",
        "Nunca he estado en Japón, pero me gustaría ir el año que viene.",
        "La comisión aprobó el reglamento por 34 votos a favor y 12 en contra.",
        "Tome una pastilla dos veces al día después de las comidas.",
        "¿Por qué no me dijiste que habían cancelado el tren?",
        "El viejo puente sobre el río estuvo cerrado por obras en 2019.",
        "¡Buenos días!",
        "Un hombre con camisa azul está subido a una escalera limpiando una ventana.",
    ),
}
"""Sentences by the primary subtag of their language, such as "en" for "en-GB"."""

SAMPLES, SAMPLE_PIECES = 12, 12  # number of random sequences for other languages, and of pieces of each
MARK = "\u2581"  # SentencePiece's character for a space


def check_sentences(language: str, pieces: Sequence[str]) -> Sequence[str]:
    """Return sentences in `language`. If SENTENCES has none, return texts of random pieces of the vocabulary.

    `pieces` is the source vocabulary. The random texts are the same in each call.
    """
    if (sentences := SENTENCES.get(language.split("-")[0])) is not None:
        return sentences
    random = Random(0)
    words = [piece for piece in pieces if not piece.startswith(("<", ">")) and piece.strip(MARK)]
    return ["".join(random.choices(words, k=SAMPLE_PIECES)).replace(MARK, " ").strip() for _ in range(SAMPLES) if words]
