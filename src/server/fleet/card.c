/* Reads cards from folders of models; see card.h. */
#include "server/fleet/card.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/sha.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "base/limits.h"
#include "weights/census.h"
#include "weights/folder.h"

void mt_cards_init(mt_cards *cards)
{
    *cards = (mt_cards){.count = 0};
    pthread_mutex_init(&cards->lock, NULL);
}

static void free_card(mt_card *card)
{
    mt_free(card->dir);
    mt_free(card);
}

void mt_cards_free(mt_cards *cards)
{
    for (size_t i = 0; i < cards->count; i++)
        free_card(cards->at[i]);
    mt_free(cards->at);
    pthread_mutex_destroy(&cards->lock);
}

/* The time at which config.json, or the GGUF file, was last changed, which stands for the model's; 0 where it is not
   known. */
static int64_t modified(const char *dir)
{
    char path[MT_LIMIT_PATH];
    struct stat info;

    mt_folder_source(path, dir, "config.json");
    return stat(path, &info) == 0 ? (int64_t)info.st_mtime : 0;
}

static void set_size(mt_card *card)
{
    static const struct {
        double unit;
        char letter;
    } units[] = {{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}, {1e3, 'K'}};
    const double count = (double)card->parameters;
    size_t i = 0;

    while (i + 1 < MT_COUNT(units) && count < units[i].unit)
        i++;
    snprintf(card->size, sizeof(card->size), "%.1f%c", count / units[i].unit, units[i].letter);
}

/* A digest of what is known of the files, in place of one of their content, which may have hundreds of gigabytes. */
static void set_digest(mt_card *card)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char text[MT_LIMIT_PATH + 128];
    const int len = snprintf(text, sizeof(text), "%s\n%" PRIu64 "\n%" PRIu64 "\n%" PRId64, card->dir, card->bytes,
                             card->parameters, card->modified);

    SHA256((const unsigned char *)text, len > 0 && (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1, digest);
    mt_hex_text(digest, sizeof(digest), card->digest);
}

/* Models with a vision tower have most of these fields in an object of its own, "text_config". */
static void read_config(mt_card *card, const mt_config *config)
{
    const struct {
        const char *key;
        int64_t *to;
    } fields[] = {{"max_position_embeddings", &card->context},
                  {"hidden_size", &card->width},
                  {"num_hidden_layers", &card->layers},
                  {"num_attention_heads", &card->heads},
                  {"num_key_value_heads", &card->kv_heads},
                  {"intermediate_size", &card->ffn},
                  {"vocab_size", &card->vocab}};
    const mt_config *inner = mt_config_object(config, "text_config");
    mt_error err;

    snprintf(card->family, sizeof(card->family), "%s", mt_config_string(config, "model_type", ""));
    for (size_t i = 0; i < MT_COUNT(fields); i++)
        if (!mt_config_int(inner && mt_config_has(inner, fields[i].key) ? inner : config, fields[i].key, 0, 0,
                           INT64_MAX, fields[i].to, &err))
            *fields[i].to = 0;
    if (!card->kv_heads)
        card->kv_heads = card->heads;
}

static void read_weights(mt_card *card, const mt_checkpoint *c)
{
    mt_census census;
    mt_quant quant;
    mt_error err;

    (void)!mt_quant_read(&quant, mt_checkpoint_config(c), &err); /* where it fails, the census judges by the tensors */
    mt_census_make(&census, c, &quant);
    card->bytes = mt_checkpoint_bytes(c);
    card->parameters = census.parameters;
    if (census.count == 0)
        return;
    snprintf(card->quantisation, sizeof(card->quantisation), "%s", census.kind[0].label);
    for (char *p = card->quantisation; !census.kind[0].quantised && *p; p++)
        *p = (char)toupper((unsigned char)*p);
}

static mt_card *read_card(const char *dir, int64_t when)
{
    mt_card *card = mt_alloc(sizeof(*card));
    mt_error err;
    mt_checkpoint *c = mt_checkpoint_inspect(dir, &err);

    card->dir = mt_strdup(dir);
    card->modified = when;
    if (c) {
        read_config(card, mt_checkpoint_config(c));
        read_weights(card, c);
    }
    mt_checkpoint_close(c);
    set_size(card);
    set_digest(card);
    return card;
}

/* A card of an older state of the folder is kept, since another thread may be using it. */
const mt_card *mt_cards_get(mt_cards *cards, const char *dir)
{
    const int64_t when = modified(dir);
    mt_card *found = NULL;

    pthread_mutex_lock(&cards->lock);
    for (size_t i = 0; i < cards->count && !found; i++)
        if (cards->at[i]->modified == when && strcmp(cards->at[i]->dir, dir) == 0)
            found = cards->at[i];
    if (!found) {
        found = read_card(dir, when);
        cards->at = mt_grow(cards->at, &cards->cap, cards->count + 1, sizeof(*cards->at));
        cards->at[cards->count++] = found;
    }
    pthread_mutex_unlock(&cards->lock);
    return found;
}
