"""The nouns of the phrasebook, by kind, such as things and drinks. vocabulary.py describes how words were chosen."""

# Columns: English[/plural] | German article and noun[/oblique singular, where it differs] | plural ("-": not used)
NOUNS = {
    "thing": """
bag|die Tasche|Taschen
suitcase|der Koffer|Koffer
backpack|der Rucksack|Rucksäcke
umbrella|der Regenschirm|Regenschirme
key|der Schlüssel|Schlüssel
passport|der Reisepass|Reisepässe
ticket|die Fahrkarte|Fahrkarten
wallet|die Brieftasche|Brieftaschen
postcard|die Postkarte|Postkarten
newspaper|die Zeitung|Zeitungen
book|das Buch|Bücher
map|die Landkarte|Landkarten
watch|die Uhr|Uhren
ring|der Ring|Ringe
blanket|die Decke|Decken
pillow|das Kissen|Kissen
towel|das Handtuch|Handtücher
toothbrush|die Zahnbürste|Zahnbürsten
comb|der Kamm|Kämme
mirror|der Spiegel|Spiegel
knife/knives|das Messer|Messer
fork|die Gabel|Gabeln
spoon|der Löffel|Löffel
plate|der Teller|Teller
cup|die Tasse|Tassen
glass|das Glas|Gläser
bottle|die Flasche|Flaschen
candle|die Kerze|Kerzen
pen|der Kugelschreiber|Kugelschreiber
pencil|der Bleistift|Bleistifte
notebook|das Notizbuch|Notizbücher
stamp|die Briefmarke|Briefmarken
package|das Paket|Pakete
gift|das Geschenk|Geschenke
ball|der Ball|Bälle
tent|das Zelt|Zelte
flashlight|die Taschenlampe|Taschenlampen
helmet|der Helm|Helme
picture|das Bild|Bilder
flower|die Blume|Blumen
magazine|die Zeitschrift|Zeitschriften
dictionary|das Wörterbuch|Wörterbücher
basket|der Korb|Körbe
necklace|die Halskette|Halsketten
bracelet|das Armband|Armbänder
doll|die Puppe|Puppen
guitar|die Gitarre|Gitarren
surfboard|das Surfbrett|Surfbretter
souvenir|das Andenken|Andenken
compass|der Kompass|Kompasse
""",
    "clothing": """
shirt|das Hemd|Hemden
dress|das Kleid|Kleider
coat|der Mantel|Mäntel
jacket|die Jacke|Jacken
hat|der Hut|Hüte
scarf/scarves|der Schal|Schals
skirt|der Rock|Röcke
sweater|der Pullover|Pullover
suit|der Anzug|Anzüge
blouse|die Bluse|Blusen
cap|die Mütze|Mützen
belt|der Gürtel|Gürtel
tie|die Krawatte|Krawatten
swimsuit|der Badeanzug|Badeanzüge
raincoat|der Regenmantel|Regenmäntel
""",
    "device": """
camera|die Kamera|Kameras
cell phone|das Handy|Handys
lamp|die Lampe|Lampen
radio|das Radio|Radios
television|der Fernseher|Fernseher
computer|der Computer|Computer
fan|der Ventilator|Ventilatoren
heater|die Heizung|Heizungen
washing machine|die Waschmaschine|Waschmaschinen
coffee machine|die Kaffeemaschine|Kaffeemaschinen
printer|der Drucker|Drucker
alarm clock|der Wecker|Wecker
air conditioner|die Klimaanlage|Klimaanlagen
hair dryer|der Föhn|Föhne
""",
    "document": """
letter|der Brief|Briefe
form|das Formular|Formulare
contract|der Vertrag|Verträge
bill|die Rechnung|Rechnungen
list|die Liste|Listen
report|der Bericht|Berichte
invitation|die Einladung|Einladungen
receipt|die Quittung|Quittungen
text|der Text|Texte
message|die Nachricht|Nachrichten
application|der Antrag|Anträge
certificate|das Zertifikat|Zertifikate
document|das Dokument|Dokumente
""",
    "food": """
soup|die Suppe|Suppen
salad|der Salat|Salate
pizza|die Pizza|Pizzen
sandwich|das Sandwich|Sandwiches
cake|der Kuchen|Kuchen
egg|das Ei|Eier
apple|der Apfel|Äpfel
banana|die Banane|Bananen
sausage|die Wurst|Würste
fish/-|der Fisch|-
steak|das Steak|Steaks
roll|das Brötchen|Brötchen
croissant|das Croissant|Croissants
pancake|der Pfannkuchen|Pfannkuchen
potato/potatoes|die Kartoffel|Kartoffeln
tomato/tomatoes|die Tomate|Tomaten
pear|die Birne|Birnen
peach|der Pfirsich|Pfirsiche
cookie|der Keks|Kekse
pretzel|die Brezel|Brezeln
dessert|der Nachtisch|-
omelet|das Omelett|Omeletts
schnitzel|das Schnitzel|Schnitzel
dumpling|der Knödel|Knödel
waffle|die Waffel|Waffeln
carrot|die Karotte|Karotten
melon|die Melone|Melonen
""",
    "drink": """
coffee|der Kaffee|-
tea|der Tee|-
beer|das Bier|-
wine|der Wein|-
juice|der Saft|-
water|das Wasser|-
lemonade|die Limonade|-
cocoa|der Kakao|-
cocktail|der Cocktail|Cocktails
""",
    "venue": """
hotel|das Hotel|Hotels
museum|das Museum|Museen
bank|die Bank|Banken
pharmacy|die Apotheke|Apotheken
hospital|das Krankenhaus|Krankenhäuser
post office|das Postamt|Postämter
market|der Markt|Märkte
supermarket|der Supermarkt|Supermärkte
restaurant|das Restaurant|Restaurants
café|das Café|Cafés
bakery|die Bäckerei|Bäckereien
library|die Bibliothek|Bibliotheken
school|die Schule|Schulen
theater|das Theater|Theater
movie theater|das Kino|Kinos
gallery|die Galerie|Galerien
bookstore|die Buchhandlung|Buchhandlungen
gas station|die Tankstelle|Tankstellen
campsite|der Campingplatz|Campingplätze
embassy|die Botschaft|Botschaften
police station|die Polizeiwache|Polizeiwachen
opera house|das Opernhaus|Opernhäuser
store|das Geschäft|Geschäfte
department store|das Kaufhaus|Kaufhäuser
swimming pool|das Schwimmbad|Schwimmbäder
""",
    "landmark": """
train station|der Bahnhof|Bahnhöfe
airport|der Flughafen|Flughäfen
church|die Kirche|Kirchen
castle|das Schloss|Schlösser
cathedral|der Dom|Dome
university|die Universität|Universitäten
park|der Park|Parks
zoo|der Zoo|Zoos
garden|der Garten|Gärten
harbor|der Hafen|Häfen
bridge|die Brücke|Brücken
tower|der Turm|Türme
town hall|das Rathaus|Rathäuser
square|der Platz|Plätze
stadium|das Stadion|Stadien
lake|der See|Seen
forest|der Wald|Wälder
palace|der Palast|Paläste
bus stop|die Bushaltestelle|Bushaltestellen
parking lot|der Parkplatz|Parkplätze
fountain|der Brunnen|Brunnen
monument|das Denkmal|Denkmäler
temple|der Tempel|Tempel
monastery|das Kloster|Klöster
mosque|die Moschee|Moscheen
""",
    "kin": """
brother|der Bruder|Brüder
sister|die Schwester|Schwestern
father|der Vater|-
mother|die Mutter|-
son|der Sohn|Söhne
daughter|die Tochter|Töchter
uncle|der Onkel|Onkel
aunt|die Tante|Tanten
grandfather|der Großvater|-
grandmother|die Großmutter|-
nephew|der Neffe/Neffen|Neffen
niece|die Nichte|Nichten
grandson|der Enkel|Enkel
granddaughter|die Enkelin|Enkelinnen
child/children|das Kind|Kinder
""",
    "spouse": """
husband|der Mann|-
wife|die Frau|-
""",
    "people": """
man/men|der Mann|Männer
woman/women|die Frau|Frauen
boy|der Junge/Jungen|Jungen
girl|das Mädchen|Mädchen
gentleman/gentlemen|der Herr/Herrn|Herren
lady|die Dame|Damen
waiter|der Kellner|Kellner
waitress|die Kellnerin|Kellnerinnen
policeman/policemen|der Polizist/Polizisten|Polizisten
policewoman/policewomen|die Polizistin|Polizistinnen
actor|der Schauspieler|Schauspieler
actress|die Schauspielerin|Schauspielerinnen
guest|der Gast|Gäste
prince|der Prinz/Prinzen|Prinzen
princess|die Prinzessin|Prinzessinnen
""",
    "line": """
train|der Zug|Züge
night train|der Nachtzug|Nachtzüge
express train|der Schnellzug|Schnellzüge
regional train|der Regionalzug|Regionalzüge
""",
    "local": """
bus|der Bus|Busse
streetcar|die Straßenbahn|Straßenbahnen
subway|die U-Bahn|U-Bahnen
""",
    "ferry": """
ferry|die Fähre|Fähren
ship|das Schiff|Schiffe
steamboat|der Dampfer|Dampfer
""",
    "vehicle": """
car|das Auto|Autos
bicycle|das Fahrrad|Fahrräder
motorcycle|das Motorrad|Motorräder
boat|das Boot|Boote
camper|das Wohnmobil|Wohnmobile
scooter|der Roller|Roller
""",
    "event": """
concert|das Konzert|Konzerte
exhibition|die Ausstellung|Ausstellungen
festival|das Festival|Festivals
tour|die Führung|Führungen
course|der Kurs|Kurse
party|die Party|Partys
meeting|die Besprechung|Besprechungen
conference|die Konferenz|Konferenzen
wedding|die Hochzeit|Hochzeiten
lecture|der Vortrag|Vorträge
race|das Rennen|Rennen
game|das Spiel|Spiele
excursion|der Ausflug|Ausflüge
""",
    "lodging": """
room|das Zimmer|Zimmer
apartment|die Wohnung|Wohnungen
house|das Haus|Häuser
vacation home|das Ferienhaus|Ferienhäuser
cabin|die Hütte|Hütten
double room|das Doppelzimmer|Doppelzimmer
suite|die Suite|Suiten
bungalow|der Bungalow|Bungalows
villa|die Villa|Villen
""",
    "seat": """
table|der Tisch|Tische
""",
    "opening": """
door|die Tür|Türen
window|das Fenster|Fenster
gate|das Tor|Tore
drawer|die Schublade|Schubladen
closet|der Schrank|Schränke
cellar|der Keller|Keller
garage|die Garage|Garagen
""",
}
