"""Which of Debian's fonts letters and digits are drawn with, and which of them are never trained on.

A family counts with all that is drawn after the same design: none of its faces is trained on if one is held out."""

PACKAGES = """3270 adf-accanthis adf-berenis adf-gillius adf-ikarius adf-libris adf-mekanus adf-oldania adf-romande
adf-switzera adf-tribun adf-universalis adf-verana agave allerta anonymous-pro arapey arkpandora averia-sans-gwf
averia-serif-gwf b612 bebas-neue beteckna breip bwht cabin cabinsketch cantarell century-catalogue clear-sans cmu
comfortaa comic-neue courier-prime croscore crosextra-caladea crosextra-carlito dejavu-core dejavu-extra
dkg-handwriting dosis dustin ebgaramond eurofurence fantasque-sans fanwood femkeklaver firacode freefont-ttf
georgewilliams gfs-didot gfs-neohellenic gnutypewriter go goudybookletter hack hermit humor-sans inconsolata inter
jetbrains-mono junction junicode karla karmilla kiloji klee lato league-mono league-spartan liberation lindenhill
linuxlibertine lobstertwo manrope millimetre monofur monoid mononoki mplus nanum national-park noto-core noto-mono
ocr-a ocr-b okolaks oldstandard open-sans opendin opendyslexic osifont oxygen paratype play prociono quicksand
radisnoir roadgeek roboto-slab roboto-unhinted routed-gothic sawarabi-gothic sil-andika sil-charis sil-doulos
sil-gentium-basic sjfonts sora staypuft stix tiresias tomsontalks tuffy ubuntu-title urw-base35 vollkorn
yanone-kaffeesatz yusei-magic""".split()


def _listed(names):
    return names.replace("\n", "").split(";")


# Beginnings of the names of families that are for evaluation alone.
HELD = _listed("""
Andika;B612;C059;Caladea;Cantarell;Comic Neue;Courier Prime;DkgHandwriting;Fanwood;Gillius;Goudy Bookletter;
Humor Sans;JetBrains Mono;Karla;Karmilla;Lato;Linux Libertine;National Park;Oxygen;PT Mono;PT Sans;PT Serif;Play;
Quicksand;Roboto Slab;Steve;Tuffy;URW Gothic;Vollkorn;Yanone Kaffeesatz;mononoki""")

# Families of these that evaluate_drawn prints with, as fontconfig calls them.
EVALUATED = _listed("""
Andika;B612;C059;Caladea;Cantarell;Comic Neue;Courier Prime;DkgHandwriting;Fanwood;Gillius ADF;
Goudy Bookletter 1911;Humor Sans;JetBrains Mono;Karla;Lato;Linux Libertine O;National Park;Oxygen-Sans;PT Mono;PT Sans;
PT Serif;Play;Quicksand;Roboto Slab;Steve;Tuffy;URW Gothic;Vollkorn;Yanone Kaffeesatz;mononoki""")

# Not letters as people know them: small capitals, symbols, phonetic signs, letters between the lines of a school book.
STRANGE = _listed("""
Abecedario;API ;Alfa-beta;BABEL;Berenis ADF Pro Math;CMU Classical;CMU Serif Upright;D050000L;DejaVu Math;
EMERITA;El Abogado;Ellhnikh;Go Smallcaps;Glass TTY;IPA ;It wasn;Jara;Junkyard;Linux Biolinum Keyboard;
Mekanus ADF Titling;Monoisome;Noto Sans Math;Noto Sans Symbols;Noto Traditional;Penguin Attack;Quercus;
Romande ADF Script;STIX Math;STIXGeneral;Standard Symbols;Tiresias Keyfont;Wargames;Z003;unifur""")

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def is_held(family):
    return family.startswith(tuple(HELD))


def is_strange(family):
    return family.startswith(tuple(STRANGE))


def wanted(style):
    """Of a family with many weights some are enough: a number that puts the plain ones first."""
    plain = ["Regular", "Bold", "Italic", "Light", "Medium", "Book", "Oblique", "Roman", "Bold Italic", "Black"]
    return plain.index(style) if style in plain else len(plain)
