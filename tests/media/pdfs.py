"""PDFs for tests, written by hand: good ones, and hostile ones that a reader must survive.

usage: tests/media/pdfs.py FOLDER        writes all of them there"""

import os
import random
import sys
import zlib

WORDS = "the quick brown fox jumps over a lazy dog while nine pages of notes wait to be read by somebody else".split()


def ref(number):
    return b"%d 0 R" % number


def stream(data, more=b"", packed=True):
    if packed:
        data, more = zlib.compress(data), more + b"/Filter/FlateDecode"
    return b"<<" + more + b"/Length %d>>\nstream\n" % len(data) + data + b"\nendstream"


def build(objects, trailer=b"", version=b"1.7"):
    """objects: {number: bytes}; 1 is the catalogue."""
    out, places = b"%PDF-" + version + b"\n%\xe2\xe3\xcf\xd3\n", {}
    for number, body in sorted(objects.items()):
        places[number] = len(out)
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 %c \n" % (places.get(number, 0), b"n" if number in places else b"f")
    return out + b"trailer\n<</Size %d/Root 1 0 R" % size + trailer + b">>\nstartxref\n%d\n%%%%EOF\n" % start


def escape(text):
    return text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def text_at(lines, size=12, left=72, top=720):
    return b"BT /F %d Tf %d %d Td %d TL\n" % (size, left, top, size + 3) + b"".join(
        b"(" + escape(line) + b") Tj T*\n" for line in lines) + b"ET\n"


FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"


def pages(contents, box=(0, 0, 612, 792), more=b"", packed=True, resources=b"", objects=None, font=FONT):
    """A PDF whose pages have these contents."""
    kids = [10 + 2 * i for i in range(len(contents))]
    made = {1: b"<</Type/Catalog/Pages 2 0 R>>", 3: font,
            2: b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), b" ".join(map(ref, kids)))}
    for kid, content in zip(kids, contents):
        made[kid] = (b"<</Type/Page/Parent 2 0 R/MediaBox[%d %d %d %d]" % box + more + b"/Resources<</Font<</F 3 0 R>>" +
                     resources + b">>/Contents " + ref(kid + 1) + b">>")
        made[kid + 1] = stream(content, packed=packed)
    made.update(objects or {})
    return build(made)


def sentence(rng, count):
    return " ".join(rng.choice(WORDS) for _ in range(count))


def picture(width, height, pixels):
    return stream(pixels, b"/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8" %
                  (width, height))


def shapes(circles, squares, word=None):
    """A page with so many red circles and blue squares, and a word."""
    content, k = b"", 0.5523
    for i in range(circles):
        x, y, r = 150 + 160 * (i % 3), 620 - 160 * (i // 3), 60
        c = k * r
        content += b"1 0 0 rg %f %f m " % (x + r, y)
        for a, b, d, e, f, g in ((r, c, c, r, 0, r), (-c, r, -r, c, -r, 0), (-r, -c, -c, -r, 0, -r), (c, -r, r, -c, r, 0)):
            content += b"%f %f %f %f %f %f c " % (x + a, y + b, x + d, y + e, x + f, y + g)
        content += b"f\n"
    for i in range(squares):
        content += b"0 0 1 rg %d 120 110 110 re f\n" % (90 + 160 * i)
    if word:
        content += b"0 g " + text_at([word], 36, 200, 300)
    return content


def triangles(count):
    """Green triangles on a page of 400 by 400."""
    return b"0 0.6 0 rg " + b"".join(b"%d 150 m %d 150 l %d 250 l f " % (40 + 120 * i, 130 + 120 * i, 85 + 120 * i)
                                     for i in range(count))


def printed(word):
    """A word as a picture of letters might be: drawn without text, by rectangles of a font of dots."""
    return b"0 g " + text_at([word], 60, 60, 180)


def good():
    """{name: PDF}: twenty."""
    rng, made = random.Random(1), {}
    made["word"] = pages([text_at(["motet"])])
    made["lines"] = pages([text_at([sentence(rng, 9) for _ in range(40)])])
    made["pages"] = pages([text_at(["page %d" % i, sentence(rng, 8)]) for i in range(12)])
    made["plain"] = pages([text_at([sentence(rng, 7)])], packed=False)
    made["umlauts"] = pages([text_at(["\u00e4\u00f6\u00fc \u00df \u00e9\u00e8 \u20ac \u2013 \u201cso\u201d", "(a) [b] \\c"])])
    made["columns"] = pages([text_at(["left %d" % i for i in range(20)]) + text_at(["right %d" % i for i in range(20)], left=320)])
    made["table"] = pages([b"".join(text_at([str(i * k) for i in range(9)], left=72 + 60 * k) for k in range(7))])
    made["landscape"] = pages([text_at([sentence(rng, 12)], top=500)], box=(0, 0, 792, 612))
    made["turned"] = pages([text_at([sentence(rng, 6)])], more=b"/Rotate 90")
    made["upside"] = pages([text_at([sentence(rng, 6)])], more=b"/Rotate 180")
    made["small"] = pages([text_at([sentence(rng, 25)], 5)])
    made["large"] = pages([text_at(["Big words"], 80, 20, 600)])
    made["blank"] = pages([b"", text_at(["the second page"]), b""])
    made["times"] = pages([text_at([sentence(rng, 9)])], font=FONT.replace(b"Helvetica", b"Times-Roman"))
    made["courier"] = pages([text_at(["int main(void) { return 0; }"])], font=FONT.replace(b"Helvetica", b"Courier"))
    made["shown"] = pages([text_at(["a picture:"]) + b"q 200 0 0 200 100 300 cm /I Do Q"], resources=b"/XObject<</I 4 0 R>>",
                          objects={4: picture(8, 8, bytes(range(192)))})
    made["form"] = pages([b"/X Do " + text_at(["outside"])], resources=b"/XObject<</X 4 0 R>>",
                         objects={4: stream(text_at(["inside"], top=400), b"/Type/XObject/Subtype/Form/BBox[0 0 612 792]"
                                            b"/Resources<</Font<</F 3 0 R>>>>")})
    made["shapes"] = pages([shapes(3, 2, "apple")])
    made["titled"] = pages([text_at([sentence(rng, 5)])], objects={5: b"<</Title(a title)>>"})
    made["many"] = pages([text_at(["%d" % i]) for i in range(60)])
    assert len(made) == 20
    return made


def encrypted():
    """A PDF that wants a password."""
    key = b"<" + b"41" * 32 + b">"
    return build({1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
                  3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
                  4: b"<</Filter/Standard/V 2/R 3/Length 128/P -44/O" + key + b"/U" + key + b">>"},
                 b"/Encrypt 4 0 R/ID[<00><00>]")


def hostile():
    """{name: PDF}: fifty. None may take long, take much, or do anything."""
    rng, made = random.Random(2), {}
    whole = pages([text_at([sentence(rng, 9) for _ in range(30)])] * 3)
    one = [text_at(["x"])]
    for part in range(1, 10):
        made["cut-%d" % part] = whole[:len(whole) * part // 10]
    for i in range(5):
        broken = bytearray(whole)
        for _ in range(40 * (i + 1)):
            broken[rng.randrange(9, len(broken))] = rng.randrange(256)
        made["noise-%d" % i] = bytes(broken)
    made["header"] = b"%PDF-1.7\n"
    made["random"] = b"%PDF-1.7\n" + rng.randbytes(200000)
    made["zeros"] = b"%PDF-1.7\n" + bytes(1 << 20)
    made["comments"] = b"%PDF-1.7\n" + b"%\n" * 500000
    made["brackets"] = build({1: b"[" * 200000 + b"]" * 200000})
    made["dictionaries"] = build({1: b"<</A" * 100000 + b" 1" + b">>" * 100000})
    made["encrypted"] = encrypted()
    packed = zlib.compress(bytes(128 << 20), 6)
    bomb = b"<</Length %d/Filter/FlateDecode>>\nstream\n" % len(packed) + packed + b"\nendstream"
    made["bomb"] = pages(one, objects={11: bomb})
    twice = zlib.compress(zlib.compress(bytes(256 << 20), 6), 6)
    made["bomb-twice"] = pages(one, objects={11: b"<</Length %d/Filter[/FlateDecode/FlateDecode]>>\nstream\n" % len(twice) +
                                             twice + b"\nendstream"})
    made["bomb-picture"] = pages([b"100 0 0 100 0 0 cm /I Do"], resources=b"/XObject<</I 4 0 R>>", objects={
        4: b"<</Type/XObject/Subtype/Image/Width 60000/Height 60000/ColorSpace/DeviceRGB/BitsPerComponent 8/Length %d"
           b"/Filter/FlateDecode>>\nstream\n" % len(packed) + packed + b"\nendstream"})
    made["bomb-objects"] = build({1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
                                  3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents[%s]>>" % (b"4 0 R " * 300000),
                                  4: stream(text_at(["x"] * 50))})
    made["pages-million"] = build({1: b"<</Type/Catalog/Pages 2 0 R>>",
                                   2: b"<</Type/Pages/Count 1000000/Kids[%s]>>" % (b"3 0 R " * 1000000),
                                   3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"})
    made["pages-claimed"] = pages(one, objects={2: b"<</Type/Pages/Count 2147483647/Kids[10 0 R]>>"})
    made["pages-negative"] = pages(one, objects={2: b"<</Type/Pages/Count -5/Kids[10 0 R]>>"})
    made["pages-loop"] = pages(one, objects={2: b"<</Type/Pages/Count 9/Kids[2 0 R 2 0 R 10 0 R]>>"})
    deep = {1: b"<</Type/Catalog/Pages 2 0 R>>", 20002: b"<</Type/Page/Parent 20001 0 R/MediaBox[0 0 9 9]>>"}
    deep.update({i: b"<</Type/Pages/Count 1/Kids[%d 0 R]/Parent %d 0 R>>" % (i + 1, max(i - 1, 2)) for i in range(2, 20002)})
    made["pages-deep"] = build(deep)
    made["no-pages"] = build({1: b"<</Type/Catalog>>"})
    made["empty-pages"] = build({1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Count 0/Kids[]>>"})
    made["root-loop"] = build({1: b"1 0 R"})
    made["length-loop"] = pages(one, objects={11: b"<</Length 11 0 R>>\nstream\nBT ET\nendstream"})
    made["xref-loop"] = whole[:whole.rindex(b"trailer")] + b"trailer\n<</Size 16/Root 1 0 R/Prev %d>>\nstartxref\n%d\n%%%%EOF" % (
        whole.rindex(b"xref\n0"), whole.rindex(b"xref\n0"))
    made["xref-huge"] = b"%PDF-1.7\nxref\n0 2147483647\ntrailer\n<</Size 2147483647/Root 1 0 R>>\nstartxref\n9\n%%EOF\n"
    made["box-huge"] = pages(one, box=(0, 0, 2000000000, 2000000000))
    made["box-negative"] = pages(one, box=(900, 900, -900, -900))
    made["box-none"] = pages(one, box=(0, 0, 0, 0))
    made["form-loop"] = pages([b"/X Do"], resources=b"/XObject<</X 4 0 R>>", objects={
        4: stream(b"/X Do /X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 4 0 R>>>>")})
    tower = {4 + i: stream(b"/X Do " * 9, b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X %d 0 R>>>>" %
                           (5 + i)) for i in range(5)}
    tower[9] = stream(text_at(["x"] * 9), b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</Font<</F 3 0 R>>>>")
    made["form-tower"] = pages([b"/X Do " * 9], resources=b"/XObject<</X 4 0 R>>", objects=tower)
    made["scripts"] = pages(one, objects={1: b"<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(while(true);)>>/AA<</O"
                                          b"<</S/Launch/F(/bin/sh)>>>>/Names<</JavaScript<</Names[(a)<</S/JavaScript/JS"
                                          b"(app.launchURL('http://127.0.0.1/'))>>]>>>>>>"})
    made["file"] = pages([b"/I Do"], resources=b"/XObject<</I 4 0 R>>", objects={
        4: b"<</Type/XObject/Subtype/Image/Width 9/Height 9/ColorSpace/DeviceGray/BitsPerComponent 8/F(/etc/passwd)"
           b"/Length 0>>\nstream\n\nendstream"})
    made["shading"] = pages([b"/S sh " * 200], resources=b"/Shading<</S 4 0 R>>", objects={
        4: b"<</ShadingType 1/ColorSpace/DeviceRGB/Domain[0 1000000 0 1000000]/Function 5 0 R>>",
        5: stream(b"{ " + b"2 copy mul sin exch pop " * 900 + b"dup dup }", b"/FunctionType 4/Domain[0 1000000 0 1000000]"
                  b"/Range[0 1 0 1 0 1]")})
    made["dashes"] = pages([b"[0.0000001] 0 d 0 0 m 600 700 l S " * 50])
    made["lines"] = pages([b"".join(b"%d %d m %d %d l S\n" % tuple(rng.randrange(600) for _ in range(4)) for _ in range(300000))])
    made["text-huge"] = pages([b"BT /F 1000000 Tf (x) Tj ET " * 2000])
    made["jpeg"] = pages([b"100 0 0 100 0 0 cm /I Do"], resources=b"/XObject<</I 4 0 R>>", objects={
        4: b"<</Type/XObject/Subtype/Image/Width 65000/Height 65000/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode"
           b"/Length 30>>\nstream\n\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03" + bytes(18) + b"\nendstream"})
    made["colour-loop"] = pages([b"/C cs 0.5 scn 0 0 99 99 re f"], resources=b"/ColorSpace<</C 4 0 R>>", objects={
        4: b"[/Indexed 4 0 R 255 4 0 R]"})
    made["font-loop"] = pages(one, font=b"<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]/FirstChar 120"
                              b"/LastChar 120/Widths[9]/Encoding<</Differences[120/x]>>/CharProcs<</x 4 0 R>>"
                              b"/Resources<</Font<</F 3 0 R>>>>>>",
                              objects={4: stream(b"9 0 d0 BT /F 9 Tf (xx) Tj ET")})
    assert len(made) == 50, len(made)
    return made


def large(count=300, size=40 << 20):
    """So many pages in so many bytes: each has a picture of noise."""
    rng = random.Random(3)
    side = int((size / count / 3) ** 0.5)
    contents, objects = [], {}
    kids = [10 + 3 * i for i in range(count)]
    objects = {1: b"<</Type/Catalog/Pages 2 0 R>>", 3: FONT,
               2: b"<</Type/Pages/Count %d/Kids[%s]>>" % (count, b" ".join(map(ref, kids)))}
    del contents
    for i, kid in enumerate(kids):
        objects[kid] = (b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F 3 0 R>>/XObject<</I %d 0 R>>>>"
                        b"/Contents %d 0 R>>" % (kid + 2, kid + 1))
        objects[kid + 1] = stream(text_at(["this is page %d" % (i + 1)]) + b"q 400 0 0 400 100 200 cm /I Do Q")
        objects[kid + 2] = picture(side, side, rng.randbytes(3 * side * side))
    return build(objects)


def main():
    folder = sys.argv[1]
    for kind, made in (("good", good()), ("hostile", hostile())):
        for name, data in made.items():
            os.makedirs(os.path.join(folder, kind), exist_ok=True)
            with open(os.path.join(folder, kind, name + ".pdf"), "wb") as f:
                f.write(data)


if __name__ == "__main__":
    main()
