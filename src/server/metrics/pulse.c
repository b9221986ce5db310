/* A column is either a counter, of which a row has the growth within its second, or a value as it is at the end of the
   second. Rows are made from the same copies that /metrics is written from, so the engine does no work for them. */
#include "server/metrics/pulse.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "server/inside.h"

enum {
#define COLUMN(id, ...) id,
#include "server/metrics/pulse.def"
    COLUMNS
};

_Static_assert(COLUMNS == MT_PULSE_COLUMNS, "a second has a value for each");

static const struct {
    const char *name;
    bool counted; /* a counter: rows have its growth */
} columns[] = {
#define COLUMN(id, name, counted, value) {name, counted},
#include "server/metrics/pulse.def"
};

void mt_pulse_init(mt_pulse *p, uint64_t memory)
{
    *p = (mt_pulse){.room = mt_pulse_seconds(memory)};
    p->seconds = mt_alloc_array(p->room, sizeof(mt_second));
}

void mt_pulse_free(mt_pulse *p)
{
    mt_free(p->seconds);
    p->seconds = NULL;
}

uint64_t mt_pulse_first(const mt_pulse *p)
{
    return p->count > p->room ? p->count - p->room : 0;
}

/* The time in milliseconds that the fraction `part` (0 to 1) of the times counted between two moments do not exceed.
   now, before: counts by buckets at both moments. NAN where no time was counted. */
static double quantile(const uint32_t *now, const uint32_t *before, double part)
{
    uint64_t count = 0, below = 0;

    for (size_t i = 0; i < MT_TEMPO_BUCKETS; i++)
        count += now[i] - before[i];
    for (size_t i = 0; count > 0 && i < MT_TEMPO_BUCKETS; i++) {
        below += now[i] - before[i];
        if (below > 0 && (double)below >= part * (double)count)
            return mt_tempo_seconds(i) * 1e3;
    }
    return NAN;
}

/* The times counted between two moments, by their lengths. */
static void count_times(const uint32_t *now, const uint32_t *before, mt_pulse_times *out)
{
    size_t used = MT_PULSE_TIMES + 1;

    for (size_t width = 1; used > MT_PULSE_TIMES; width *= 2) {
        *out = (mt_pulse_times){0};
        used = 0;
        for (size_t i = 0; i < MT_TEMPO_BUCKETS && used <= MT_PULSE_TIMES; i += width) {
            uint32_t count = 0;

            for (size_t k = i; k < i + width && k < MT_TEMPO_BUCKETS; k++)
                count += now[k] - before[k];
            if (count > 0 && used < MT_PULSE_TIMES) {
                out->ms[used] = (float)(mt_tempo_seconds(i + width / 2) * 1e3);
                out->count[used] = count;
            }
            used += count > 0;
        }
    }
}

static size_t pages_held(const mt_stats *s)
{
    size_t held = 0;

    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        held += s->pages_held[g];
    return held;
}

static uint64_t texts_encoded(const mt_member_past *m)
{
    uint64_t texts = 0;

    for (size_t e = 0; e < MT_COUNT(m->encoders); e++)
        texts += m->encoders[e].texts;
    return texts;
}

/* Adds up all models, including what they did before they were last unloaded. */
static void add_models(mt_fleet *fleet, double *v)
{
    mt_member_past *m = mt_alloc(sizeof(*m));

    pthread_mutex_lock(&fleet->lock);
    for (size_t i = 0; i < fleet->count; i++) {
        mt_member_count(fleet->members[i], m);
#define COLUMN(id, name, counted, value) v[id] += (double)(value);
#include "server/metrics/pulse.def"
    }
    pthread_mutex_unlock(&fleet->lock);
    mt_free(m);
}

/* The present value of each column but the quantiles. */
static void read_values(mt_server *server, const mt_tempo *tempo, double *v)
{
    mt_http_stats http;

    add_models(&server->fleet, v);
    mt_http_server_stats(server->http, &http);
    v[RUNNING] = (double)tempo->running / 1e6;
    v[WAITING] = (double)tempo->waiting / 1e6;
    v[PREFILLED] = (double)tempo->prompt;
    v[RESIDENT] = (double)mt_resident_bytes(NULL);
    v[REFUSED] = (double)http.answers[4];
    v[FAILED] = (double)http.answers[5];
    v[CONNECTIONS] = (double)http.connections_open;
}

void mt_pulse_beat(mt_pulse *p, mt_server *server)
{
    static const double parts[3] = {0.5, 0.9, 0.99};
    mt_voices *voices = server->fleet.voices;
    mt_second *row = &p->seconds[p->count++ % p->room];
    double v[COLUMNS] = {0};
    const uint64_t now = mt_clock_ns();
    mt_tempo tempo;

    mt_voices_tempo(voices, now, &tempo);
    read_values(server, &tempo, v);
    row->at = mt_voices_time(voices, now);
    for (size_t i = 0; i < COLUMNS; i++)
        row->value[i] = (float)(columns[i].counted ? v[i] - p->before[i] : v[i]);
    for (size_t i = 0; i < 3; i++) {
        row->value[FIRST + i] = (float)quantile(tempo.first, p->tempo.first, parts[i]);
        row->value[BETWEEN + i] = (float)quantile(tempo.between, p->tempo.between, parts[i]);
    }
    count_times(tempo.first, p->tempo.first, &row->times[0]);
    count_times(tempo.between, p->tempo.between, &row->times[1]);
    memcpy(p->before, v, sizeof(v));
    p->tempo = tempo;
}

void mt_pulse_names(mt_buf *out)
{
    mt_json_write(out, "['at'");
    for (size_t i = 0; i < COLUMNS; i++)
        mt_json_write(out, "%s", columns[i].name);
    mt_json_write(out, "'first_token_times','between_tokens_times']");
}

/* Where accounts do not share cached prompts, the reason of a cache miss would tell that others have sent the same
   text. */
static void hide_others(float *v)
{
    v[LOOKUPS_FIRST_SIGHT] += v[LOOKUPS_SALT] + v[LOOKUPS_EVICTED];
    v[LOOKUPS_SALT] = v[LOOKUPS_EVICTED] = 0;
}

void mt_pulse_write(const mt_pulse *p, uint64_t n, bool apart, mt_buf *out)
{
    mt_second row = p->seconds[n % p->room];

    if (apart)
        hide_others(row.value);
    mt_json_write(out, "[%llu", (unsigned long long)row.at);
    for (size_t i = 0; i < COLUMNS; i++)
        if (isnan(row.value[i]))
            mt_json_write(out, "null");
        else
            mt_json_write(out, "%.6g", (double)row.value[i]);
    for (size_t t = 0; t < MT_COUNT(row.times); t++) {
        mt_json_write(out, "[");
        for (size_t i = 0; i < MT_PULSE_TIMES && row.times[t].count[i] > 0; i++)
            mt_json_write(out, "%.4g,%" PRIu32, (double)row.times[t].ms[i], row.times[t].count[i]);
        mt_json_write(out, "]");
    }
    mt_json_write(out, "]");
}
