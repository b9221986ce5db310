/* Makes the messages that motet bench sends to servers: random words that are about one token each, so that two prompts
   share no beginning but the prefix that they should share. */
#include <png.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/alloc.h"
#include "cli/bench_load.h"

#define WORDS_BYTES (64u << 20)

static const char *const words[] = {
    "the",  "of",   "and",   "to",  "in",   "is",    "that", "for", "it",   "as",    "was",   "with", "be",
    "by",   "on",   "not",   "he",  "his",  "but",   "at",   "are", "this", "have",  "from",  "or",   "had",
    "an",   "they", "which", "one", "you",  "were",  "all",  "her", "she",  "there", "would", "we",   "him",
    "been", "has",  "when",  "who", "will", "no",    "more", "if",  "out",  "so",    "up",    "what", "about",
    "into", "than", "them",  "can", "only", "other", "time", "new", "some", "could", "these", "two",
};

void mt_workload_words(mt_buf *out, mt_dice *dice, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            mt_buf_puts(out, " ");
        mt_buf_puts(out, words[mt_dice_roll(dice) % MT_COUNT(words)]);
    }
}

static json_t *text_of(const mt_workload *w, double tokens, uint64_t seed)
{
    mt_dice dice = {seed};
    mt_buf text;
    const double count = w->per_word > 0 ? tokens / w->per_word : tokens;
    mt_buf_init(&text, WORDS_BYTES);
    mt_workload_words(&text, &dice, count < 1 ? 1 : (size_t)count);
    json_t *string = json_string(text.data);
    mt_buf_free(&text);
    return string;
}

/* A picture of noise as a data URL with a PNG file. */
static char *picture_url(size_t side, uint64_t seed)
{
    static const char head[] = "data:image/png;base64,";
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)side,
                       .height = (png_uint_32)side,
                       .format = PNG_FORMAT_RGB};
    mt_dice dice = {seed};
    uint8_t *pixels = mt_alloc(3 * side * side);
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *file = mt_alloc(size);
    char *url = NULL;
    for (size_t i = 0; i < 3 * side * side; i++)
        /* Only 6 of 8 bits are random, so that the PNG is smaller than the pixels */
        pixels[i] = (uint8_t)(128 + mt_dice_roll(&dice) % 64);
    if (png_image_write_to_memory(&image, file, &size, 0, pixels, 0, NULL)) {
        const size_t room = sizeof(head) + 4 * (size / 3 + 1);
        url = mt_alloc(room);
        memcpy(url, head, sizeof(head));
        EVP_EncodeBlock((unsigned char *)url + sizeof(head) - 1, file, (int)size);
    }
    mt_free(pixels);
    mt_free(file);
    return url;
}

static uint64_t seed_of(const mt_workload *w, uint64_t number, uint64_t turn)
{
    mt_dice dice = {w->seed * 0x9e3779b97f4a7c15u ^ (number << 16 | turn)};
    return mt_dice_roll(&dice);
}

json_t *mt_workload_begin(const mt_workload *w, uint64_t number)
{
    json_t *messages = json_array(), *text = text_of(w, w->prompt - w->beside, seed_of(w, number, 1));
    if (w->prefix > 0)
        json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "system", "content",
                                                  text_of(w, w->prefix, seed_of(w, UINT32_MAX, 0))));
    char *url = w->side ? picture_url(w->side, seed_of(w, number, 2)) : NULL;
    if (url)
        json_array_append_new(messages,
                              json_pack("{s:s, s:[{s:s, s:{s:s}}, {s:s, s:o}]}", "role", "user", "content", "type",
                                        "image_url", "image_url", "url", url, "type", "text", "text", text));
    else
        json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "user", "content", text));
    mt_free(url);
    return messages;
}

void mt_workload_go_on(const mt_workload *w, json_t *messages, const char *answer, uint64_t number, size_t turn)
{
    json_t *said = json_string(answer);
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "assistant", "content",
                                              said ? said : json_string(""))); /* the answer was not valid UTF-8 */
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "user", "content",
                                              text_of(w, w->prompt - w->beside, seed_of(w, number, 8 + turn))));
}
