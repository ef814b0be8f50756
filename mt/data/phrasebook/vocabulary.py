"""All words of the phrasebook except nouns (nouns.py): English lemma, German lemma, and irregular forms.

The tables are text with one lemma on each line and columns separated by "|"; lexicon.py reads them. Each English word
has one German translation: there is no word of unclear sex ("the teacher"), no past tense that looks like the present
("read"), and no noun that is also a verb of the phrasebook with another translation.
"""

# Columns: English, with irregular forms after slashes (past, participle, -ing) | German [prefix-]infinitive, third
# person, participle | kinds of object ("none": intransitive) | marks: sein (perfect with "sein"); stative (without
# progressive and requests); dat, or a preposition with its case; company (can be followed by "with my brother")
VERBS = """
buy/bought|kaufen kauft gekauft|thing clothing device vehicle|
need|brauchen braucht gebraucht|thing clothing device|stative
find/found|finden findet gefunden|thing clothing venue|stative
lose/lost/lost/losing|verlieren verliert verloren|thing clothing|stative
forget/forgot/forgotten/forgetting|vergessen vergisst vergessen|thing clothing|stative
look for|suchen sucht gesucht|thing clothing venue landmark lodging|
take/took/taken along|mit-nehmen nimmt mitgenommen|thing clothing|
bring/brought along|mit-bringen bringt mitgebracht|thing|
carry|tragen trägt getragen|thing|
sell/sold|verkaufen verkauft verkauft|thing clothing vehicle|
borrow|aus-leihen leiht ausgeliehen|thing clothing|
hide/hid/hidden|verstecken versteckt versteckt|thing|
give/gave/given back|zurück-geben gibt zurückgegeben|thing|
pack|ein-packen packt eingepackt|thing clothing|
describe|beschreiben beschreibt beschrieben|thing venue landmark|
receive|bekommen bekommt bekommen|document|stative
try/tried/tried on|an-probieren probiert anprobiert|clothing|
wash|waschen wäscht gewaschen|clothing vehicle|
wear/wore/worn|tragen trägt getragen|clothing|
repair|reparieren repariert repariert|device vehicle|
switch on|ein-schalten schaltet eingeschaltet|device|
switch off|aus-schalten schaltet ausgeschaltet|device|
use|benutzen benutzt benutzt|device|
sign|unterschreiben unterschreibt unterschrieben|document|
check|prüfen prüft geprüft|document|
print|aus-drucken druckt ausgedruckt|document|
copy|kopieren kopiert kopiert|document|
translate|übersetzen übersetzt übersetzt|document|
write/wrote/written|schreiben schreibt geschrieben|document|
eat/ate/eaten|essen isst gegessen|food|
taste|probieren probiert probiert|food drink|
cook|kochen kocht gekocht|none|
order|bestellen bestellt bestellt|food drink|
recommend|empfehlen empfiehlt empfohlen|food drink venue|
pay/paid for|bezahlen bezahlt bezahlt|food drink|
drink/drank/drunk|trinken trinkt getrunken|drink|
open|öffnen öffnet geöffnet|opening|
close|schließen schließt geschlossen|opening|
lock|ab-schließen schließt abgeschlossen|opening|
visit|besuchen besucht besucht|venue landmark kin spouse|
see/saw/seen|sehen sieht gesehen|landmark kin spouse people|stative
photograph|fotografieren fotografiert fotografiert|venue landmark kin spouse people|
recognize|erkennen erkennt erkannt|landmark kin spouse people|stative
reach|erreichen erreicht erreicht|venue landmark|stative
leave/left/left|verlassen verlässt verlassen|venue landmark|
meet/met/met|treffen trifft getroffen|kin spouse people|
ask|fragen fragt gefragt|kin spouse people|
call|an-rufen ruft angerufen|kin spouse people|
invite|ein-laden lädt eingeladen|kin spouse people|
pick up|ab-holen holt abgeholt|kin spouse document|
understand/understood|verstehen versteht verstanden|kin spouse people|stative
help|helfen hilft geholfen|kin spouse people|dat
thank|danken dankt gedankt|kin spouse people|dat
follow|folgen folgt gefolgt|kin spouse people|dat sein
congratulate|gratulieren gratuliert gratuliert|kin spouse people|dat
trust|vertrauen vertraut vertraut|kin spouse people|dat stative
answer|antworten antwortet geantwortet|kin spouse people|dat
greet|grüßen grüßt gegrüßt|kin spouse people|
surprise|überraschen überrascht überrascht|kin spouse people|
wait for|warten wartet gewartet|kin spouse people line local ferry|auf+acc
talk to|sprechen spricht gesprochen|kin spouse people|mit+dat
look after|auf-passen passt aufgepasst|kin spouse thing|auf+acc
dream of|träumen träumt geträumt|landmark kin spouse|von+dat stative
take/took/taken part in|teil-nehmen nimmt teilgenommen|event|an+dat
miss|verpassen verpasst verpasst|line local ferry event|stative
take/took/taken|nehmen nimmt genommen|line local ferry|
rent|mieten mietet gemietet|vehicle lodging|
plan/planned/planned/planning|planen plant geplant|event|
enjoy|genießen genießt genossen|event|
cancel|ab-sagen sagt abgesagt|event|
prepare|vor-bereiten bereitet vorbereitet|event|
reserve|reservieren reserviert reserviert|lodging seat|
sleep/slept|schlafen schläft geschlafen|none|
work|arbeiten arbeitet gearbeitet|none|company
wait|warten wartet gewartet|none|company
swim/swam/swum/swimming|schwimmen schwimmt geschwommen|none|company sein
dance|tanzen tanzt getanzt|none|company
sing/sang/sung|singen singt gesungen|none|company
play|spielen spielt gespielt|none|company
laugh|lachen lacht gelacht|none|company
smoke|rauchen raucht geraucht|none|
hike|wandern wandert gewandert|none|company sein
have/had breakfast|frühstücken frühstückt gefrühstückt|none|company
arrive|an-kommen kommt angekommen|none|company sein
get/got/gotten/getting up|auf-stehen steht aufgestanden|none|sein
wake/woke/woken up|auf-wachen wacht aufgewacht|none|sein
come/came/come back|zurück-kommen kommt zurückgekommen|none|company sein
get/got/gotten/getting off|aus-steigen steigt ausgestiegen|none|company sein
transfer/transferred/transferred/transferring|um-steigen steigt umgestiegen|none|company sein
go/went/gone out|aus-gehen geht ausgegangen|none|company sein
shop/shopped/shopped/shopping|ein-kaufen kauft eingekauft|none|company
tidy/tidied/tidied up|auf-räumen räumt aufgeräumt|none|company
travel|reisen reist gereist|city|sein
fly/flew/flown|fliegen fliegt geflogen|city|sein
drive/drove/driven|fahren fährt gefahren|city|sein
go/went/gone|gehen geht gegangen|venue landmark|zu+dat sein
walk|laufen läuft gelaufen|venue landmark|zu+dat sein
run/ran/run/running|rennen rennt gerannt|venue landmark|zu+dat sein
"""

# Verbs that have separate constructions: verbs with two objects, or with a train or an event as subject.
GIVING = """
give/gave/given|geben gibt gegeben|thing clothing|
show/showed/shown|zeigen zeigt gezeigt|thing clothing|
send/sent|schicken schickt geschickt|thing|
bring/brought|bringen bringt gebracht|thing clothing|
lend/lent|leihen leiht geliehen|thing clothing|
"""
DEPARTING = """
depart|ab-fahren fährt abgefahren|none|sein
arrive|an-kommen kommt angekommen|none|sein
"""
HAPPENING = """
begin/began/begun/beginning|beginnen beginnt begonnen|none|
end|enden endet geendet|none|
take/took/taken place|statt-finden findet stattgefunden|none|
"""

# Columns: English, comparative ("-": none) | German[/stem before an ending], comparative | kinds of noun
ADJECTIVES = """
new newer|neu neuer|thing clothing device document venue vehicle lodging opening line ferry
old older|alt älter|thing clothing device document venue landmark vehicle lodging opening line ferry people
small smaller|klein kleiner|thing clothing device food venue landmark vehicle lodging opening event people
big bigger|groß größer|thing clothing device food venue landmark vehicle lodging opening event line ferry
red -|rot -|thing clothing device vehicle opening
blue -|blau -|thing clothing device vehicle opening
green -|grün -|thing clothing device vehicle opening
black -|schwarz -|thing clothing device vehicle opening
white -|weiß -|thing clothing device vehicle opening
yellow -|gelb -|thing clothing device vehicle opening
brown -|braun -|thing clothing device vehicle opening
gray -|grau -|thing clothing device vehicle opening
cheap cheaper|billig billiger|thing clothing device food drink vehicle lodging
expensive more_expensive|teuer/teur teurer|thing clothing device food drink vehicle lodging
heavy heavier|schwer schwerer|thing clothing device opening vehicle
light lighter|leicht leichter|thing clothing device vehicle
beautiful more_beautiful|schön schöner|thing clothing venue landmark lodging event
ugly uglier|hässlich hässlicher|thing clothing venue landmark
dirty dirtier|schmutzig schmutziger|thing clothing venue vehicle
clean cleaner|sauber sauberer|thing clothing venue vehicle lodging
practical more_practical|praktisch praktischer|thing clothing device vehicle
elegant more_elegant|elegant eleganter|thing clothing venue lodging
thick thicker|dick dicker|thing clothing
modern more_modern|modern moderner|device venue landmark vehicle lodging line ferry
loud louder|laut lauter|vehicle event people
broken -|kaputt -|thing device vehicle opening
fast faster|schnell schneller|vehicle line ferry people
slow slower|langsam langsamer|vehicle line ferry people
safe safer|sicher sicherer|vehicle lodging line ferry
comfortable more_comfortable|bequem bequemer|clothing vehicle lodging line ferry
warm warmer|warm wärmer|clothing food drink lodging
important more_important|wichtig wichtiger|document event
long longer|lang länger|document event
short shorter|kurz kürzer|document event
official -|offiziell -|document event
complete -|vollständig -|document
fresh fresher|frisch frischer|food drink
hot hotter|heiß heißer|food drink
cold colder|kalt kälter|food drink
sweet sweeter|süß süßer|food
good better|gut besser|food drink venue event
delicious -|lecker -|food drink
famous more_famous|berühmt berühmter|venue landmark people
quiet quieter|ruhig ruhiger|venue landmark lodging people
popular more_popular|beliebt beliebter|venue landmark event
interesting more_interesting|interessant interessanter|venue landmark event
boring more_boring|langweilig langweiliger|venue landmark event
empty emptier|leer leerer|venue landmark
historic -|historisch -|venue landmark
young younger|jung jünger|people
friendly friendlier|freundlich freundlicher|people
polite more_polite|höflich höflicher|people
tall taller|groß größer|people
rich richer|reich reicher|people
strong stronger|stark stärker|people
tired more_tired|müde/müd müder|people state
sick -|krank -|people state
happy happier|glücklich glücklicher|people state
sad sadder|traurig trauriger|people state
hungry hungrier|hungrig hungriger|people state
thirsty thirstier|durstig durstiger|people state
nervous more_nervous|nervös nervöser|people state
proud prouder|stolz stolzer|people state
satisfied more_satisfied|zufrieden zufriedener|people state
"""

# Closed lists, whose words are never held out.
CITIES = """
Berlin|Berlin
Vienna|Wien
Munich|München
Cologne|Köln
Zurich|Zürich
Geneva|Genf
Rome|Rom
Paris|Paris
London|London
Prague|Prag
Warsaw|Warschau
Brussels|Brüssel
Lisbon|Lissabon
Hamburg|Hamburg
Venice|Venedig
Copenhagen|Kopenhagen
Athens|Athen
Milan|Mailand
Madrid|Madrid
Dresden|Dresden
"""
NAMES = "Anna Thomas Maria Peter Laura Paul Julia Felix Emma Lukas"
DAYS = (
    "Monday|Montag Tuesday|Dienstag Wednesday|Mittwoch Thursday|Donnerstag "
    "Friday|Freitag Saturday|Samstag Sunday|Sonntag"
)
MONTHS = (
    "January|Januar February|Februar March|März April|April May|Mai June|Juni July|Juli August|August "
    "September|September October|Oktober November|November December|Dezember"
)
NUMBERS = (
    "two|zwei three|drei four|vier five|fünf six|sechs "
    "seven|sieben eight|acht nine|neun ten|zehn eleven|elf twelve|zwölf"
)
