/* Chooses among GGUF files by their names (gguf_choice.h). */
#include "weights/gguf_choice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/units.h"

#define SUFFIX ".gguf"
#define NUMBERS "-00001-of-00001"

static const char *without_folders(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash ? slash + 1 : name;
}

bool mt_gguf_named(const char *name)
{
    const size_t len = strlen(name), tail = strlen(SUFFIX);

    return len > tail && strcmp(name + len - tail, SUFFIX) == 0;
}

bool mt_gguf_is_projector(const char *name)
{
    return mt_gguf_named(name) && strstr(without_folders(name), "mmproj");
}

/* Reads "-00002-of-00004" at the end of a stem. */
static bool numbered(const char *stem, size_t len, unsigned *number, unsigned *total)
{
    static const char form[] = NUMBERS;
    const size_t size = sizeof(form) - 1;

    if (len <= size)
        return false;
    for (size_t i = 0; i < size; i++) {
        const char c = stem[len - size + i];

        if (isdigit((unsigned char)form[i]) ? !isdigit((unsigned char)c) : c != form[i])
            return false;
    }
    return sscanf(stem + len - size, "-%5u-of-%5u", number, total) == 2;
}

const char *mt_gguf_stem(const char *name, size_t *len)
{
    const char *stem = without_folders(name);
    unsigned number, total;

    *len = strlen(stem) - (mt_gguf_named(name) ? strlen(SUFFIX) : 0);
    if (numbered(stem, *len, &number, &total))
        *len -= strlen(NUMBERS);
    return stem;
}

/* The shard's number and their count; 1 of 1 where the name has no numbers. */
static void shard_of(const char *name, unsigned *number, unsigned *total)
{
    const char *stem = without_folders(name);

    if (!numbered(stem, strlen(stem) - (mt_gguf_named(name) ? strlen(SUFFIX) : 0), number, total))
        *number = *total = 1;
}

bool mt_gguf_shard(const char *first, unsigned number)
{
    unsigned one, total;

    shard_of(first, &one, &total);
    return number >= 1 && number <= total;
}

void mt_gguf_set_shard(char *first, unsigned number)
{
    unsigned one, total;
    char digits[16];

    shard_of(first, &one, &total);
    if (total == 1)
        return;
    snprintf(digits, sizeof(digits), "%05u", number % 100000);
    memcpy(first + strlen(first) - strlen(NUMBERS SUFFIX) + 1, digits, 5);
}

/* Whether a part of a name is a quantisation's: Q4_K_M, IQ4_XS, MXFP4_MOE, BF16. */
static bool is_label(const char *part, size_t len)
{
    static const char *const whole[] = {"F32", "F16", "BF16", "FP16", "FP32"}, *const begins[] = {"MXFP4", "NVFP4"};
    size_t digits = len > 1 && strncasecmp(part, "IQ", 2) == 0 ? 2 : 1;

    for (size_t i = 0; i < MT_COUNT(whole); i++)
        if (len == strlen(whole[i]) && strncasecmp(part, whole[i], len) == 0)
            return true;
    for (size_t i = 0; i < MT_COUNT(begins); i++)
        if (len >= strlen(begins[i]) && strncasecmp(part, begins[i], strlen(begins[i])) == 0)
            return true;
    if (len > 2 && strncasecmp(part, "TQ", 2) == 0)
        digits = 2;
    return len > digits + 1 && (digits == 2 || toupper((unsigned char)part[0]) == 'Q') &&
           isdigit((unsigned char)part[digits]) && part[digits + 1] == '_';
}

/* Whether the file is an importance matrix, from which the quantisations beside it were made: it is called so, and not
   like one of them ("m-imatrix-Q4_K_M.gguf"). */
static bool is_matrix(const char *name)
{
    size_t len;
    const char *stem = mt_gguf_stem(name, &len);

    if (!strcasestr(stem, "imatrix"))
        return false;
    for (size_t at = 0, end; at < len; at = end + 1) {
        end = at + strcspn(stem + at, "-.");
        if (is_label(stem + at, end - at))
            return false;
    }
    return true;
}

bool mt_gguf_is_first(const char *name)
{
    unsigned number, total;

    shard_of(name, &number, &total);
    return mt_gguf_named(name) && !mt_gguf_is_projector(name) && !is_matrix(name) && number == 1;
}

bool mt_gguf_same(const char *name, const char *other)
{
    size_t len, other_len;
    const char *stem = mt_gguf_stem(name, &len), *other_stem = mt_gguf_stem(other, &other_len);
    unsigned number, total, other_total;

    shard_of(name, &number, &total);
    shard_of(other, &number, &other_total);
    return total == other_total && stem - name == other_stem - other && len == other_len &&
           memcmp(name, other, (size_t)(stem - name) + len) == 0;
}

void mt_gguf_label(const char *name, char out[MT_GGUF_LABEL])
{
    size_t len;
    const char *stem = mt_gguf_stem(name, &len);
    size_t at = len;

    out[0] = '\0';
    while (at > 0 && stem[at - 1] != '-' && stem[at - 1] != '.')
        at--;
    if (!is_label(stem + at, len - at))
        return;
    if (at >= 3 && strncasecmp(stem + at - 3, "UD-", 3) == 0 && (at == 3 || stem[at - 4] == '-'))
        at -= 3;
    if (len - at >= MT_GGUF_LABEL)
        return;
    for (size_t i = 0; i < len - at; i++)
        out[i] = (char)toupper((unsigned char)stem[at + i]);
    out[len - at] = '\0';
}

/* All bytes of the model whose first file is files[first]. */
static uint64_t total_bytes(const mt_gguf_file *files, size_t count, size_t first)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        if (mt_gguf_same(files[i].name, files[first].name))
            bytes += files[i].bytes;
    return bytes;
}

bool mt_gguf_has_label(const char *name, const char *tag)
{
    char label[MT_GGUF_LABEL];

    mt_gguf_label(name, label);
    return strcasecmp(label, tag) == 0;
}

/* The first model of that label, or else of that label with "UD-" before it, that fits; `count`: none. */
static size_t find_label(const mt_gguf_file *files, size_t count, const char *tag, uint64_t memory)
{
    char dynamic[MT_GGUF_LABEL + 3];

    snprintf(dynamic, sizeof(dynamic), "UD-%.*s", MT_GGUF_LABEL - 1, tag);
    for (size_t i = 0; i < 2 * count; i++) {
        const char *name = files[i % count].name;

        if (mt_gguf_is_first(name) && mt_gguf_has_label(name, i < count ? tag : dynamic) &&
            (!memory || total_bytes(files, count, i % count) <= memory))
            return i % count;
    }
    return count;
}

static size_t find_largest(const mt_gguf_file *files, size_t count, uint64_t memory)
{
    size_t best = count;
    uint64_t most = 0;

    for (size_t i = 0; i < count; i++) {
        if (!mt_gguf_is_first(files[i].name))
            continue;
        const uint64_t bytes = total_bytes(files, count, i);
        if ((!memory || bytes <= memory) && (best == count || bytes > most)) {
            best = i;
            most = bytes;
        }
    }
    return best;
}

/* Lists the quantisations with their sizes: "Q4_K_M (4.6 GiB), Q8_0 (8.1 GiB)". */
static void list_labels(mt_buf *out, const mt_gguf_file *files, size_t count)
{
    size_t shown = 0;

    for (size_t i = 0; i < count; i++) {
        char label[MT_GGUF_LABEL], size[MT_UNITS_TEXT];

        if (!mt_gguf_is_first(files[i].name))
            continue;
        mt_gguf_label(files[i].name, label);
        if (!mt_buf_printf(out, "%s%s (%s)", shown++ ? ", " : "", *label ? label : without_folders(files[i].name),
                           mt_bytes_text(total_bytes(files, count, i), size)))
            return;
    }
}

static bool fail(const mt_gguf_file *files, size_t count, const char *tag, uint64_t memory, mt_error *err)
{
    char may[MT_UNITS_TEXT];
    mt_buf list;

    mt_buf_init(&list, MT_LIMIT_ERROR_TEXT / 2);
    list_labels(&list, files, count);
    const char *there = list.data ? list.data : "";
    if (!list.len)
        mt_fail(err, MT_E_NOT_FOUND, "there is no GGUF file of a model; give a folder that has one");
    else if (*tag)
        mt_fail(err, MT_E_NOT_FOUND, "there is no quantisation \"%.40s\"; take one of these: %s", tag, there);
    else
        mt_fail(err, MT_E_MEMORY, "no quantisation takes %s or less, which motet may take here: %s",
                mt_bytes_text(memory, may), there);
    mt_buf_free(&list);
    return false;
}

bool mt_gguf_choose(const mt_gguf_file *files, size_t count, const char *tag, uint64_t memory, size_t *out,
                    mt_error *err)
{
    static const char *const favourites[] = {"Q4_K_M", "Q4_K_XL", "Q4_K_S", "MXFP4", "MXFP4_MOE", "Q4_0",
                                             "IQ4_NL", "IQ4_XS",  "Q5_K_M", "Q6_K",  "Q8_0"};
    size_t found = count;

    tag = tag && strcasecmp(tag, "latest") != 0 ? tag : "";
    if (*tag) {
        found = find_label(files, count, tag, 0);
    } else {
        for (size_t i = 0; i < MT_COUNT(favourites) && found == count; i++)
            found = find_label(files, count, favourites[i], memory);
        if (found == count)
            found = find_largest(files, count, memory);
    }
    if (found == count)
        return fail(files, count, tag, memory, err);
    *out = found;
    return true;
}

/* Writes a model's name: that of its file without the quantisation. */
static void base_of(const char *name, char out[MT_LIMIT_PATH])
{
    char label[MT_GGUF_LABEL];
    size_t len;
    const char *stem = mt_gguf_stem(name, &len);

    mt_gguf_label(name, label);
    if (*label && strlen(label) < len)
        len -= strlen(label) + 1;
    snprintf(out, MT_LIMIT_PATH, "%.*s", (int)len, stem);
}

/* Whether all models among the files are the same one in different quantisations. */
static bool is_alone(const mt_gguf_file *files, size_t count, const char *base)
{
    for (size_t i = 0; i < count; i++) {
        char other[MT_LIMIT_PATH];

        base_of(files[i].name, other);
        if (mt_gguf_is_first(files[i].name) && strcasecmp(other, base) != 0)
            return false;
    }
    return true;
}

size_t mt_gguf_choose_projector(const mt_gguf_file *files, size_t count, const char *model)
{
    static const char *const favourites[] = {"F16", "BF16", "F32", "Q8_0", ""};
    char base[MT_LIMIT_PATH];

    base_of(model, base);
    const bool alone = is_alone(files, count, base);
    for (size_t f = 0; f < MT_COUNT(favourites); f++)
        for (size_t i = 0; i < count; i++)
            if (mt_gguf_is_projector(files[i].name) && (alone || strcasestr(files[i].name, base)) &&
                (!*favourites[f] || mt_gguf_has_label(files[i].name, favourites[f])))
                return i;
    return count;
}
