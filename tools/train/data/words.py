"""What there is to speak of."""

import json
import re
from pathlib import Path

NAMES = """Chris Anna Ben Clara David Emma Felix Greta Henry Ida Jonas Kate Leo Mia Noah Olga Paul Quinn Rosa Sam Tina
Ulrich Vera Walter Xenia Yara Zoe Alice Bob Carol Dan Eve Frank Grace Hugo Iris Jack Karin Liam Maria Nina Oscar Petra
Ralf Sara Tom Uma Victor Wendy Yusuf Zara Adam Bella Carlos Dora Elias Fiona George Hanna Ivan Julia Kai Laura Max
Nora Otto Pia Rita Simon Thea Viktor William Amir Beatrix Cem Daria Enzo Farah Gustav Helen Igor Jana Kofi Lina Mateo
Nadia Omar Priya Rahul Selma Tariq Ursula Vikram Wanda Yuki Zelda Arthur Bruno Celia Dario Edith Flora Gino Hilda
Isaac Jules Kira Lars Mona Nils Olivia Pablo Rufus Stella Theo Vito Willa Alma Boris Cora Dirk Ella Fritz Gwen Horst
Ines Jakob Lea Marco Nele Piet Romy Sven Tilda Urs Valentin Wilma Ying Zeno James Mary John Linda Robert Susan Michael
Karen Peter Lucy Andrew Emily Daniel Sophie Thomas Jane Mark Ruth Steven Ellen Kevin Amy Brian Diana Edward Martha
Jason Claire Ryan""".split()

START = """ba be bi bo da de di do fa fe fi ga go ha he ja jo ka ke ki ko la le li lo lu ma me mi mo na ne ni
no pa pe po ra re ri ro ru sa se si so ta te ti to tu va ve vi wa we ya yo za zo""".split()
END = "n r s l m k t d x na ra la ro no ko ta mi lia ric ton bert mar den vin sel gor".split()

CITIES = """Paris Berlin Rome Madrid Oslo Vienna Prague Lisbon Athens Dublin London Warsaw Helsinki Bern Tokyo Delhi
Cairo Lima Quito Boston Chicago Denver Seattle Austin Miami Toronto Sydney Perth Auckland Mumbai Seoul Beijing Nairobi
Lagos Hamburg Munich Cologne Dresden Leipzig Bremen Zurich Geneva Milan Turin Naples Venice Porto Seville Lyon Nice
Lille Ghent Utrecht Malmo Bergen Tampere Riga Vilnius Tallinn Krakow Sofia Zagreb Havana Bogota Santiago Dallas
Portland Phoenix""".split()

ANIMALS = """dog cat horse cow sheep goat pig rabbit mouse fox wolf bear lion tiger panda koala owl eagle duck goose
swan frog snake turtle whale dolphin shark seal otter beaver badger squirrel hedgehog deer moose camel zebra giraffe
monkey penguin parrot crow sparrow bee spider snail lizard octopus crab donkey hamster raven stork""".split()

FOODS = """pizza pasta rice bread soup salad cheese chocolate cake pancakes curry sushi tacos apples bananas cherries
strawberries oranges grapes mangoes carrots potatoes tomatoes beans noodles dumplings cookies waffles honey yogurt
porridge popcorn pears plums figs olives mushrooms spinach pumpkin lasagna omelette""".split()

JOBS = """teacher doctor nurse baker farmer pilot sailor painter writer singer dancer cook gardener carpenter plumber
electrician engineer programmer lawyer judge driver dentist librarian photographer mechanic tailor butcher barber
scientist astronaut firefighter journalist waiter architect chemist shepherd potter clockmaker""".split()

THINGS = """lamp kite boat map key bell drum book clock coin crown cup door feather flute garden hat jar ladder
lantern letter mirror needle bridge pencil ring rope shell shoe stone sword tower umbrella violin wagon window basket
blanket bottle box button candle chair compass cloak diamond engine fence globe hammer island jewel kettle leaf
mountain nest ocean piano quilt river scarf table train valley wheel zipper camera guitar rocket robot bicycle
telescope""".split()

COLOURS = "red green blue yellow orange purple pink brown black white grey cyan".split()

ADJECTIVES = """small brave old young clever lonely happy sleepy curious gentle quiet tall shy kind proud hungry silly
tiny golden quick patient honest cheerful clumsy wise""".split()

PLACES = """forest village meadow mountain harbour castle garden desert island valley lake cave river town library
lighthouse farm beach market mill swamp orchard""".split()

HOBBIES = """chess swimming painting reading cycling running dancing singing fishing hiking cooking climbing skating
sailing knitting gardening juggling photography tennis football""".split()

VERBS = "walked ran climbed drove sailed travelled wandered hurried crept marched".split()

FILLER = """the of and to in is on with for at by from as it was are this that new each other first last part line
item report note record table value group order system project section page plan result change rule test data list
file task server client user team meeting budget version release package module folder number word text field name
price market window paper water stone light house street garden winter summer morning evening month week year early
late small large open close begin end move turn keep hold write read send receive check update remove add build run
start stop wait follow under over between within before after during without against about every some many most few
both either next same such quite rather often never always usually sometimes perhaps almost nearly exactly simply
clearly""".split()

COMMON = """captain kitchen bedroom bathroom hall garage office cellar attic school church bank shop hotel airport
station hospital museum theatre cinema park zoo road path corner roof floor wall stair gate bench sofa shelf drawer
carpet curtain pillow towel soap brush comb razor spoon fork knife plate bowl glass pot pan oven stove fridge sink tap
bucket broom iron screw nail saw drill shovel rake axe pump pipe wire cable plug switch battery radio phone tablet
screen keyboard printer cloud rain snow wind storm thunder fog sun moon star sky earth fire ice sand rock hill cliff
shore wave tide grass tree bush flower seed root branch bark berry corn wheat oats barley butter cream milk egg meat
fish pork beef ham sausage pepper salt sugar spice tea coffee juice wine beer king queen prince princess knight
soldier general admiral pirate thief spy hero giant dwarf witch wizard ghost dragon angel monster child baby boy girl
man woman father mother uncle aunt cousin brother sister husband wife friend guest stranger neighbour leader member
player winner loser owner buyer seller worker student hand foot arm leg head face eye ear nose mouth tooth hair skin
bone heart blood back knee shoulder finger thumb toe shirt coat dress skirt trousers sock boot glove belt tie jacket
sweater uniform costume helmet badge mask wig car bus truck tram ship ferry plane jet balloon taxi van sled cart canoe
raft motor wing sail anchor music song dance game sport race goal team ball bat net score prize medal ticket stage
show film photo poem verse page love hope fear joy anger peace war luck fate truth lie dream sleep wish idea plan
trick joke secret mystery reason silver gold copper steel glassware plastic rubber leather cotton wool silk linen
brick tile marble clay wax glue ink paint spring autumn noon midnight sunrise sunset yesterday today tomorrow minute
hour second decade century north south east west left right middle front above below inside outside near far big fat
thin wide narrow deep shallow heavy light soft hard smooth rough wet dry hot cold warm cool sharp dull bright dark
loud fast slow strong weak rich poor cheap dear free busy lazy angry calm sad funny strange famous secretive certain
jump swim fly crawl throw catch kick push pull bend break mend cut sew cook bake boil fry eat drink taste smell touch
hear listen look watch speak talk shout whisper sing laugh cry smile frown think learn teach forget remember believe
app.py app main index config script module object class method string array vector matrix""".split()


# Names and towns as they are written where they come from.
FAR_NAMES = """Zoë Renée José María Jürgen Søren Björn Åsa Łukasz Małgorzata Dvořák Šárka Žofia Chloë Noël Inés Núria
Joaquín Beyoncé François Hélène Aurélie Éloïse Günther Käthe Jörg Öznur Şebnem Çağla Gülşen Ágnes Zoltán Péter Ştefan
Ionuț Gheorghiță Jānis Līga Mārtiņš Žydrūnas Ūla Tõnu Õie Þóra Guðrún Æsa Siân Niamh Seán Órla Pádraig João Conceição
Antônio Ngọc Nguyễn Đức Quỳnh Trần Nikólaos Tomáš Ľubica Ondřej Kristýna Vojtěch Bożena Wojciech Özgür İpek Ömer Ayşe
Saoirse Caoimhe Zdeněk Nadège Anaïs Gaël Maël Naïma Raphaël Mélanie Benoît Loïc Jérôme Stéphane Andrés Sofía Martín
Lucía Tomás Álvaro Íñigo Begoña Muñoz Peña Matías""".split()
MARKED = """O'Brien O'Connor O'Neill D'Angelo D'Arcy N'Golo M'Baye Anne-Marie Jean-Luc Mary-Jane Karl-Heinz Ng'ang'a
L'Oreal Ra'anan Al-Sayed Abd-Allah Mary-Ann Hans-Peter Marie-Claire O'Hara O'Malley De'Andre Ja'Marr T'Pol Mac-Duff
Jean-Paul Anna-Lena Eva-Maria D'Souza D'Amico""".split() + [
    "van der Berg", "de la Cruz", "von Trapp", "Mary Ann Smith", "John F. Smith", "Dr. Brown", "St. Claire",
    "da Silva", "Juan Carlos", "Lee Min-ho", "Kim Ji-woo", "McDonald", "MacLeod", "DeVito", "LaToya", "Van Gogh",
]
FAR_CITIES = """Zürich München Köln Düsseldorf Tromsø Malmö Göteborg Århus Kraków Łódź Wrocław Gdańsk Bogotá Medellín
Cancún Brasília Belém Maceió Québec Montréal Reykjavík Ísafjörður Tórshavn Chișinău Iași Brașov Plovdiv Tbilisi
Nîmes Orléans Besançon Béziers Málaga Cádiz Córdoba León Coruña Évora Setúbal Győr Pécs Székesfehérvár Děčín Plzeň
Ústí České Žilina Košice Žadar Niš Čačak Šibenik Đakovo İzmir Muğla Şanlıurfa Çanakkale Hà-Nội Huế Đà-Nẵng Jyväskylä
Hämeenlinna Mérida Asunción""".split() + [
    "São Paulo", "San José", "New York", "Los Angeles", "Rio de Janeiro", "Buenos Aires", "Cape Town", "Hong Kong",
    "Baden-Baden", "Aix-en-Provence", "Stratford-upon-Avon", "St. John's", "L'Aquila", "Coeur d'Alene", "Nuku'alofa",
    "Sana'a", "Xi'an", "Val-d'Or", "N'Djamena", "Las Vegas", "San Francisco", "Kuala Lumpur", "Addis Ababa",
    "Ho Chi Minh City", "Saint-Étienne", "Den Haag", "La Paz", "Bad Tölz", "Ciudad Juárez", "León Guzmán",
]
NATIVE = """東京 大阪 京都 北京 上海 香港 台北 서울 부산 東京都 名古屋 札幌 広州 成都 Москва Киев Київ София Минск Казань
Харків Αθήνα Πάτρα Θεσσαλονίκη القاهرة دبي بغداد תל_אביב ירושלים दिल्ली मुंबई กรุงเทพ თბილისი Երևան 田中 鈴木 佐藤 山田太郎
王伟 李娜 张三 김철수 박지민 Иван Ольга Наташа Дмитрий Γιώργος Ελένη محمد فاطمة דוד שרה राम प्रिया สมชาย ニコ さくら 太郎 花子
たろう はなこ クリス マリア Єва Љубица Ђорђе Ўткир""".replace("_", " ").split()
_FAR = FAR_NAMES + FAR_CITIES
_JOINED = ["O'{0}", "D'{0}", "{0}-{1}", "{0} {1}", "{0} de {1}", "L'{0}", "{0}'{2}", "Mc{0}", "{0} {1} {3}"]
_ACCENTS = {
    "a": "áàâäãåāăą", "c": "çćč", "d": "ďđ", "e": "éèêëēėęě", "g": "ğģ", "i": "íìîïīį", "l": "łļľ", "n": "ñńňņ",
    "o": "óòôöõøōő", "r": "řŕ", "s": "śšşș", "t": "ťțţ", "u": "úùûüūůűų", "y": "ýÿ", "z": "źžż",
}
_SCRIPTS = [
    (0x4E00, 0x9FA0), (0x4E00, 0x9FA0), (0x4E00, 0x9FA0), (0x3042, 0x3094), (0x30A2, 0x30F4), (0xAC00, 0xD7A0),
    (0x0430, 0x0450), (0x0410, 0x0430), (0x03B1, 0x03C2), (0x05D0, 0x05EB), (0x0627, 0x063B), (0x0905, 0x0939),
    (0x0E01, 0x0E2F), (0x10D0, 0x10F1), (0x0561, 0x0587), (0x1F600, 0x1F640), (0x1F300, 0x1F320), (0x2600, 0x2618),
    (0x00C0, 0x00D7), (0x00E0, 0x00F7), (0x0100, 0x0130), (0x2190, 0x2200), (0x20A0, 0x20B0), (0x0980, 0x09A9),
]


def accented(dice, word):
    """The same word with some letters as other languages write them."""
    made = [dice.any(_ACCENTS[c]) if c in _ACCENTS and dice.chance(0.35) else c for c in word]
    return "".join(made)


def script(dice, low=1, high=4):
    """Some letters of one script, any of them: what is never written in training cannot be written later."""
    first, last = dice.any(_SCRIPTS)
    return "".join(chr(dice.number(first, last - 1)) for _ in range(dice.number(low, high)))


def exotic(dice, salt, listed):
    """A name that plain English letters do not write, or not alone."""
    kind = dice.random.random()
    if kind < 0.3:
        return dice.pick(listed, salt)
    if kind < 0.42:
        return dice.pick(MARKED, salt)
    if kind < 0.52:
        return dice.pick(NATIVE, salt)
    if kind < 0.72:
        return dice.made(lambda: accented(dice, invented(dice)), salt)
    if kind < 0.84:
        join = dice.any(_JOINED)
        make = lambda: join.format(invented(dice), invented(dice), invented(dice).lower(), invented(dice))  # noqa: E731
        return dice.made(make, salt)
    return dice.made(lambda: script(dice, 2, 5), salt)


def invented(dice):
    """A name that nobody has."""
    name = "".join(dice.any(START) for _ in range(dice.number(1, 3))) + dice.any(END)
    return name.capitalize()


ALL = THINGS + ANIMALS + FOODS + JOBS + HOBBIES + ADJECTIVES + PLACES + FILLER
WIDE = list(dict.fromkeys(ALL + COMMON))


_vocabulary = json.loads(Path(__file__).resolve().parents[1].joinpath("tokens/tokenizer.json").read_text("utf-8"))
PIECES = [p.replace(chr(0x120), " ") for p in _vocabulary["model"]["vocab"]]
PIECES = [p for p in PIECES if re.fullmatch(r" ?[/._-]?[A-Za-z]+", p)]


def soup(dice):
    """Any pieces of the vocabulary: a token that is never written in training cannot be written later."""
    return "".join(dice.any(PIECES) for _ in range(dice.any([1, 2, 2, 3]))).strip(" ./_-") or "a"


def _anything(dice):
    if dice.chance(dice.exotic / 2):
        return exotic(dice, "any", _FAR) if dice.chance(0.7) else script(dice, 1, 6)
    kind = dice.random.random()
    if kind < 0.1 and not dice.held:
        return soup(dice)
    if kind < 0.2:
        return dice.any(ALL)
    if kind < 0.4:
        return dice.any(WIDE)
    if kind < 0.6:
        return invented(dice).lower()
    if kind < 0.75:
        return f"{dice.any(WIDE)} {dice.any(WIDE)}"
    if kind < 0.85:
        return invented(dice)
    if kind < 0.93:
        return f"{dice.any(ALL)}{dice.any(['', '-', '_'])}{dice.number(1, 99)}"
    return f"{dice.any(ADJECTIVES)} {dice.any(WIDE)} {dice.any(WIDE)}"


def anything(dice, salt):
    """Any word or words: what a value may be that nobody foresaw."""
    return dice.made(lambda: _anything(dice), salt)


def name(dice, salt="name"):
    if dice.chance(dice.exotic):
        return exotic(dice, salt, FAR_NAMES)
    return dice.pick(NAMES, salt) if dice.chance(0.5) else dice.made(lambda: invented(dice), salt)


def city(dice, salt):
    if dice.chance(dice.exotic):
        return exotic(dice, salt, FAR_CITIES)
    return dice.pick(CITIES, salt) if dice.chance(0.6) else dice.made(lambda: invented(dice), salt)


def a(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def sentence(dice, low=5, high=14):
    """Words without meaning, to be read over."""
    words = [dice.any(FILLER) for _ in range(dice.number(low, high))]
    if dice.chance(0.2):
        words.insert(dice.number(0, len(words)), str(dice.number(1, 2000)))
    return " ".join(words).capitalize() + "."
