/* How fast a tokenizer is on one core: loading it, encoding, decoding. Times are the processor's own, the best of
   a few, so that a busy machine changes them little. bench/text.py puts the tokenizers library's beside them.

   usage: bench_text TOKENIZER [FILE ...]     a tokenizer.json or its folder; texts to encode besides those made here
          bench_text --write FOLDER           writes the texts made here, to run another program on them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "text/limits.h"
#include "text/tokenizer.h"

enum { TEXT_BYTES = 1 << 20, RUNS = 5 };

static const char *const common[] = {
    "the",     "of",    "and",     "to",    "in",     "a",     "is",    "that",    "for",   "it",    "as",
    "was",     "with",  "be",      "by",    "on",     "not",   "he",    "his",     "but",   "at",    "are",
    "this",    "have",  "from",    "or",    "had",    "an",    "they",  "which",   "one",   "you",   "were",
    "her",     "all",   "she",     "there", "would",  "their", "we",    "him",     "been",  "has",   "when",
    "who",     "will",  "more",    "no",    "if",     "out",   "so",    "said",    "what",  "up",    "its",
    "about",   "into",  "than",    "them",  "can",    "only",  "other", "new",     "some",  "could", "time",
    "these",   "two",   "may",     "then",  "do",     "first", "any",   "my",      "now",   "such",  "like",
    "our",     "over",  "man",     "me",    "even",   "most",  "made",  "after",   "also",  "did",   "many",
    "before",  "must",  "through", "years", "where",  "much",  "your",  "way",     "well",  "down",  "should",
    "because", "each",  "just",    "those", "people", "how",   "too",   "little",  "state", "good",  "very",
    "make",    "world", "still",   "own",   "see",    "men",   "work",  "long",    "get",   "here",  "between",
    "both",    "life",  "being",   "under", "never",  "day",   "same",  "another", "know",
};
static const char *const stems[] = {
    "govern",     "develop",  "consider", "represent", "establish", "continu",   "produc",    "relat",
    "understand", "organ",    "generat",  "express",   "measur",    "observ",    "direct",    "charact",
    "separat",    "determin", "comput",   "translat",  "harmon",    "architect", "philosoph", "mountain",
    "river",      "engin",    "season",   "window",    "garden",    "letter",
};
static const char *const endings[] = {"ment", "ation", "ed",  "ing", "ly",  "er", "ers",
                                      "s",    "al",    "ive", "",    "ism", "ity"};

static uint64_t seed;

static size_t draw(size_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % below;
}

/* A common word, the commoner the likelier, or a made-up one. */
static void put_word(mt_buf *out, bool capital)
{
    size_t begin = out->len;

    if (draw(100) < 75) {
        size_t a = draw(MT_COUNT(common)), b = draw(MT_COUNT(common));

        mt_buf_puts(out, common[a < b ? a : b]);
    } else {
        mt_buf_puts(out, stems[draw(MT_COUNT(stems))]);
        mt_buf_puts(out, endings[draw(MT_COUNT(endings))]);
    }
    if (capital)
        out->data[begin] = (char)(out->data[begin] - 32);
}

static void make_prose(mt_buf *out)
{
    static const char *const ends[] = {". ", ". ", ". ", "? ", "! ", ".\n\n", "; ", ": "};

    while (out->len < TEXT_BYTES) {
        size_t words = 4 + draw(20);

        for (size_t i = 0; i < words; i++) {
            put_word(out, i == 0);
            if (draw(60) == 0)
                mt_buf_printf(out, " %zu", draw(3000));
            mt_buf_puts(out, i + 1 == words ? ends[draw(MT_COUNT(ends))] : draw(12) == 0 ? ", " : " ");
        }
    }
}

static void put_char(mt_buf *out, uint32_t c)
{
    char bytes[MT_UTF8_MAX];

    mt_buf_add(out, bytes, mt_utf8_encode(c, bytes));
}

/* Words of many scripts between English ones, with emoji and accents. */
static void make_mixed(mt_buf *out)
{
    static const struct {
        uint32_t first, count;
    } scripts[] = {
        {0x430, 32},  {0x3B1, 25},    {0x5D0, 27},    {0x627, 36},     {0x905, 53},    {0xE01, 46}, {0x3041, 83},
        {0x30A1, 83}, {0x4E00, 6000}, {0x4E00, 3000}, {0xAC00, 11000}, {0x1F300, 500}, {0xE0, 30},
    };

    while (out->len < TEXT_BYTES) {
        size_t script = draw(MT_COUNT(scripts) + 4), chars = 1 + draw(9);

        if (script >= MT_COUNT(scripts))
            put_word(out, false);
        for (size_t i = 0; script < MT_COUNT(scripts) && i < chars; i++)
            put_char(out, scripts[script].first + (uint32_t)draw(scripts[script].count));
        if (draw(10) == 0)
            put_char(out, 0x301);
        mt_buf_puts(out, draw(8) == 0 ? ", " : draw(40) == 0 ? "\n" : " ");
    }
}

static void make_repeated(mt_buf *out, const char *what)
{
    while (out->len < TEXT_BYTES)
        mt_buf_puts(out, what);
}

static void make_a(mt_buf *out)
{
    make_repeated(out, "a");
}

static void make_blanks(mt_buf *out)
{
    make_repeated(out, " ");
}

static void make_lines(mt_buf *out)
{
    make_repeated(out, "\n");
}

static void make_emoji(mt_buf *out)
{
    make_repeated(out, "\xF0\x9F\x98\x80"); /* U+1F600 */
}

static void make_angles(mt_buf *out)
{
    make_repeated(out, "<");
}

static void make_marks(mt_buf *out)
{
    make_repeated(out, "\xCC\x81\xCC\xA3"); /* U+0301 U+0323 */
}

static const struct {
    const char *name;
    void (*make)(mt_buf *out);
} texts[] = {
    {"prose", make_prose}, {"mixed", make_mixed}, {"aaaa", make_a},        {"blanks", make_blanks},
    {"lines", make_lines}, {"emoji", make_emoji}, {"angles", make_angles}, {"marks", make_marks},
};

static void make_text(mt_buf *out, size_t which)
{
    mt_buf_init(out, 2 * TEXT_BYTES);
    seed = 1;
    texts[which].make(out);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double best(double a, double start)
{
    double s = now() - start;

    return s < a ? s : a;
}

static void measure(const mt_tokenizer *t, const char *name, const char *text, size_t len)
{
    double first = 0, encode = 1e9, decode = 1e9;
    mt_ids ids = {0};
    mt_error err;
    mt_buf back;

    mt_buf_init(&back, MT_LIMIT_ENCODE_BYTES);
    for (int i = 0; i < RUNS; i++) {
        double start = now();

        ids.count = 0;
        if (!mt_tokenizer_encode(t, text, len, NULL, &ids, &err)) {
            printf("%-10s %s\n", name, err.text);
            break;
        }
        encode = best(encode, start);
        first = i == 0 ? encode : first;
        mt_buf_free(&back);
        start = now();
        if (!mt_tokenizer_decode(t, ids.data, ids.count, false, &back))
            printf("%-10s the text is too long to decode\n", name);
        decode = best(decode, start);
    }
    printf("%-10s %6.2f MB %8zu tokens   encode %7.2f MB/s, the first time %7.2f   decode %7.2f MB/s\n", name,
           (double)len / 1e6, ids.count, (double)len / 1e6 / encode, (double)len / 1e6 / first,
           (double)back.len / 1e6 / decode);
    mt_ids_free(&ids);
    mt_buf_free(&back);
}

static void measure_file(const mt_tokenizer *t, const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    FILE *file = fopen(path, "rb");
    char *text = mt_alloc(MT_LIMIT_ENCODE_BYTES);

    if (file) {
        measure(t, name, text, fread(text, 1, MT_LIMIT_ENCODE_BYTES, file));
        fclose(file);
    } else {
        perror(path);
    }
    mt_free(text);
}

static int write_texts(const char *folder)
{
    for (size_t i = 0; i < MT_COUNT(texts); i++) {
        char path[MT_LIMIT_PATH];
        FILE *file;
        mt_buf text;

        make_text(&text, i);
        snprintf(path, sizeof(path), "%s/%s.txt", folder, texts[i].name);
        file = fopen(path, "wb");
        if (!file || fwrite(text.data, 1, text.len, file) != text.len || fclose(file)) {
            perror(path);
            return 1;
        }
        mt_buf_free(&text);
    }
    return 0;
}

int main(int argc, char **argv)
{
    mt_tokenizer *t = NULL;
    double load = 1e9;
    mt_error err;

    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_texts(argv[2]);
    if (argc < 2) {
        fprintf(stderr, "usage: bench_text TOKENIZER [FILE ...]\n       bench_text --write FOLDER\n");
        return 2;
    }
    for (int i = 0; i < RUNS; i++) {
        double start;

        mt_tokenizer_free(t);
        start = now();
        t = mt_tokenizer_load(argv[1], &err);
        if (!t) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        load = best(load, start);
    }
    printf("load       %8.1f ms, %zu tokens\n", load * 1e3, mt_tokenizer_size(t));
    for (size_t i = 0; i < MT_COUNT(texts); i++) {
        mt_buf text;

        make_text(&text, i);
        measure(t, texts[i].name, text.data, text.len);
        mt_buf_free(&text);
    }
    for (int i = 2; i < argc; i++)
        measure_file(t, argv[i]);
    mt_tokenizer_free(t);
    return 0;
}
