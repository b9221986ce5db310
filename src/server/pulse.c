/* A column is either a counter, of which a row has the growth within its second, or a value as it is at the end of the
   second. Rows are made from the same copies that /metrics is written from, so the engine does no work for them. */
#include "server/pulse.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "server/inside.h"

typedef enum column {
    RUNNING,
    WAITING,
    PROMPT,
    CACHED,
    PREFILLED,
    GENERATED,
    FIRST,               /* three quantiles: p50, p90, p99 */
    BETWEEN = FIRST + 3, /* three quantiles, too */
    STEPS = BETWEEN + 3,
    ROWS,
    PAGES_HELD,
    PAGES_KNOWN,
    EVICTIONS,
    STATES_HELD,
    STATES_KNOWN,
    FEATURES,
    PICTURES_FOUND,
    PICTURES_ENCODED,
    LOOKUPS, /* one for each mt_miss */
    ASIDE = LOOKUPS + MT_MISS_COUNT,
    GUESSED,
    TAKEN,
    CONSTRAINED,
    MASKS,
    COMPILED,
    RESIDENT,
    ENDED, /* one for each mt_finish */
    REFUSED = ENDED + 4,
    FAILED,
    CONNECTIONS,
    ENCODED,
    COLUMNS
} column;

_Static_assert(COLUMNS == MT_PULSE_COLUMNS, "a second has a value for each");

static const struct {
    const char *name;
    bool counted; /* a counter: rows have its growth */
} columns[COLUMNS] = {
    [RUNNING] = {"running", true},
    [WAITING] = {"waiting", true},
    [PROMPT] = {"prompt_tokens", true},
    [CACHED] = {"cached_tokens", true},
    [PREFILLED] = {"prefilled_tokens", true},
    [GENERATED] = {"generated_tokens", true},
    [FIRST] = {"first_token_p50_ms", false},
    [FIRST + 1] = {"first_token_p90_ms", false},
    [FIRST + 2] = {"first_token_p99_ms", false},
    [BETWEEN] = {"between_tokens_p50_ms", false},
    [BETWEEN + 1] = {"between_tokens_p90_ms", false},
    [BETWEEN + 2] = {"between_tokens_p99_ms", false},
    [STEPS] = {"steps", true},
    [ROWS] = {"rows", true},
    [PAGES_HELD] = {"pages_held", false},
    [PAGES_KNOWN] = {"pages_known", false},
    [EVICTIONS] = {"pages_evicted", true},
    [STATES_HELD] = {"states_held", false},
    [STATES_KNOWN] = {"states_known", false},
    [FEATURES] = {"features_bytes", false},
    [PICTURES_FOUND] = {"pictures_found", true},
    [PICTURES_ENCODED] = {"pictures_encoded", true},
    [LOOKUPS + MT_MISS_NONE] = {"lookups_found_all", true},
    [LOOKUPS + MT_MISS_FIRST_SIGHT] = {"lookups_first_sight", true},
    [LOOKUPS + MT_MISS_EVICTED] = {"lookups_evicted", true},
    [LOOKUPS + MT_MISS_SALT] = {"lookups_salt", true},
    [LOOKUPS + MT_MISS_MEDIA] = {"lookups_media", true},
    [LOOKUPS + MT_MISS_WINDOW] = {"lookups_window", true},
    [LOOKUPS + MT_MISS_STATE] = {"lookups_state", true},
    [ASIDE] = {"set_aside", true},
    [GUESSED] = {"guessed_tokens", true},
    [TAKEN] = {"guesses_taken", true},
    [CONSTRAINED] = {"constrained_tokens", true},
    [MASKS] = {"masks_computed", true},
    [COMPILED] = {"constraints_compiled", true},
    [RESIDENT] = {"resident_bytes", false},
    [ENDED + MT_FINISH_STOP] = {"ended_stop", true},
    [ENDED + MT_FINISH_LENGTH] = {"ended_length", true},
    [ENDED + MT_FINISH_CANCELLED] = {"ended_cancelled", true},
    [ENDED + MT_FINISH_ERROR] = {"ended_error", true},
    [REFUSED] = {"http_4xx", true},
    [FAILED] = {"http_5xx", true},
    [CONNECTIONS] = {"http_connections", false},
    [ENCODED] = {"texts_encoded", true},
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

static void add_cache(const mt_stats *s, double *v)
{
    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        v[PAGES_HELD] += (double)s->pages_held[g];
    v[PAGES_KNOWN] += (double)s->pages_known;
    v[EVICTIONS] += (double)s->evictions;
    v[STATES_HELD] += (double)s->states_held;
    v[STATES_KNOWN] += (double)s->states_known;
    v[FEATURES] += (double)s->media_bytes;
    v[PICTURES_FOUND] += (double)s->media_hits;
    v[PICTURES_ENCODED] += (double)s->media_misses;
    for (size_t i = 0; i < MT_MISS_COUNT; i++)
        v[LOOKUPS + i] += (double)s->misses[i];
}

static void add_engine(const mt_stats *s, double *v)
{
    v[PROMPT] += (double)s->prompt_tokens;
    v[CACHED] += (double)s->cached_tokens;
    v[GENERATED] += (double)s->generated_tokens;
    v[STEPS] += (double)s->steps;
    v[ROWS] += (double)s->step_rows;
    v[ASIDE] += (double)s->preemptions;
    v[GUESSED] += (double)s->draft_tokens;
    v[TAKEN] += (double)s->draft_accepted;
    v[CONSTRAINED] += (double)s->masks.asked;
    v[MASKS] += (double)s->masks.computed;
    for (size_t i = 0; i < MT_COUNT(s->finished); i++)
        v[ENDED + i] += (double)s->finished[i];
    add_cache(s, v);
}

/* Adds up all models, including what they did before they were last unloaded. */
static void add_models(mt_fleet *fleet, double *v)
{
    mt_member_past *all = mt_alloc(sizeof(*all));

    mt_fleet_lock(fleet);
    for (size_t i = 0; i < fleet->count; i++) {
        mt_member_count(fleet->members[i], all);
        add_engine(&all->stats, v);
        v[COMPILED] += (double)all->constraints.compiled;
        for (size_t e = 0; e < MT_COUNT(all->encoders); e++)
            v[ENCODED] += (double)all->encoders[e].texts;
    }
    mt_fleet_unlock(fleet);
    mt_free(all);
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
    memcpy(p->before, v, sizeof(v));
    p->tempo = tempo;
}

void mt_pulse_names(mt_buf *out)
{
    mt_json_write(out, "['at'");
    for (size_t i = 0; i < COLUMNS; i++)
        mt_json_write(out, "%s", columns[i].name);
    mt_json_write(out, "]");
}

/* Where accounts do not share cached prompts, the reason of a cache miss would tell that others have sent the same
   text. */
static void hide_others(float *v)
{
    v[LOOKUPS + MT_MISS_FIRST_SIGHT] += v[LOOKUPS + MT_MISS_SALT] + v[LOOKUPS + MT_MISS_EVICTED];
    v[LOOKUPS + MT_MISS_SALT] = v[LOOKUPS + MT_MISS_EVICTED] = 0;
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
    mt_json_write(out, "]");
}
