/* Divides the memory into weights, working memory, prefix cache, recurrent states and features. The device says what it
   has and what it holds. Where the device uses the host's memory, all share one budget. Where it has memory of its own,
   weights, cache, states and features are there, and requests, pixels and the rest are on the host. */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/log.h"
#include "engine/inside.h"
#include "engine/limits.h"

#define MEDIA_CACHE (1u << 30) /* bytes of features, at most, where the parameters do not say */
#define PICTURES (1u << 30)    /* bytes of pixels, at most, where the parameters do not say */
/* but at least so many, unless that is more than a fourth: a JPEG of 12 megapixels */
#define PICTURES_LEAST (96u << 20)
#define REQUESTS_SHARE 8 /* requests get one part of so many of what weights and working memory leave */
#define STATE_SHARE 8    /* kept states get one part of so many of what memory leaves */
#define STATES_EACH 4  /* but at most so many for each page of the cache: a short prompt on one page keeps about four */
#define STATES_LEAST 2 /* and at least so many: a step may read one and write another */
#define SPARE_SHARE 16 /* states of steps that are begun ahead get at most one part of so many */
#define UNUSED_SHARE 8 /* one part of so many of the host's rest is left unused, for what nobody has counted */

/* How many pages each group gets of `bytes`. Groups with a window need fewer: the window of each running sequence, and
   half as many as the first group for windows that are kept. */
static void share_pages(const mt_engine *e, uint64_t bytes, size_t pages[MT_KV_GROUPS])
{
    const mt_model_spec *spec = e->spec;
    double weight = 0;
    for (size_t g = 0; g < spec->group_count; g++) {
        const mt_kv_shape shape = mt_model_kv_shape(spec, g, mt_kv_cached_type(e->dev));
        weight += (double)mt_kv_page_bytes(e->dev, &shape) * (spec->groups[g].window ? 0.5 : 1);
    }
    const size_t whole = (size_t)((double)bytes / weight);
    for (size_t g = 0; g < spec->group_count; g++) {
        const size_t window = (spec->groups[g].window + e->params.rows + 2 * MT_KV_SEGMENT) / MT_PAGE_TOKENS + 2;
        pages[g] = !spec->groups[g].window ? whole : whole / 2 > window ? whole / 2 : window;
    }
}

/* How many slots for recurrent states there are: one for each running sequence, and some to continue from. Takes their
   bytes from *bytes, at most half; where that is too little, fewer sequences run. pages: the most that the cache may
   have. 0 where the model has no such layers. */
static size_t share_states(mt_engine *e, uint64_t *bytes, size_t pages)
{
    if (e->spec->state.layers == 0)
        return 0;
    const uint64_t slot = mt_state_slot_bytes(e->dev, &e->spec->state), most = *bytes / 2 / slot;
    uint64_t kept = e->params.state_cache ? e->params.state_cache / slot : *bytes / STATE_SHARE / slot;
    if (!e->params.state_cache && kept > STATES_EACH * pages)
        kept = STATES_EACH * pages;
    kept = kept > most / 2 ? most / 2 : kept;
    kept = kept < STATES_LEAST ? STATES_LEAST : kept;
    if (most <= kept)
        *bytes = 0;
    else if (e->params.sequences > most - kept) {
        e->params.sequences = (size_t)(most - kept);
        mt_log_info("engine.states", "room for the recurrent states of %zu sequences", e->params.sequences);
    }
    const uint64_t states = e->params.sequences + kept;
    *bytes -= states * slot < *bytes ? states * slot : *bytes;
    return (size_t)states;
}

/* How many more there are, at most one for each running sequence, for steps that are begun ahead. Takes their bytes
   from *bytes. */
static size_t share_spare(mt_engine *e, uint64_t *bytes)
{
    if (e->spec->state.layers == 0 || !mt_engine_can_go_ahead(e))
        return 0;
    const uint64_t slot = mt_state_slot_bytes(e->dev, &e->spec->state), most = *bytes / SPARE_SHARE / slot;
    const uint64_t spare = most < e->params.sequences ? most : e->params.sequences;
    *bytes -= spare * slot;
    return (size_t)spare;
}

uint64_t mt_engine_memory(const mt_engine_params *params, const mt_device *dev)
{
    if (params->memory)
        return params->memory;
    return mt_device_apart(dev) ? mt_device_memory(dev) / 16 * 15 : mt_device_memory(dev) / 4 * 3;
}

uint64_t mt_engine_host_memory(const mt_engine_params *params, const mt_device *dev)
{
    if (!mt_device_apart(dev))
        return mt_engine_memory(params, dev);
    return params->host_memory ? params->host_memory : mt_host_memory() / 4 * 3;
}

/* Bytes of the process besides mapped weights: tokenizer, templates, libraries, working memory. Of resident pages that
   are backed by files, as many count as weights as there are weights. 0 where the system does not tell. Where other
   engines run in the process: what this thread has allocated for its model. */
static uint64_t measure_own(const mt_engine *e, uint64_t weights)
{
    uint64_t files = 0;
    if (e->params.shares)
        return mt_alloc_held() > e->params.held ? (uint64_t)(mt_alloc_held() - e->params.held) : 0;
    const uint64_t resident = mt_resident_bytes(&files), mapped = files < weights ? files : weights;
    return resident > mapped ? resident - mapped : 0;
}

/* Measures once: when the device is reopened, requests in memory would be counted too, and the model should get as
   much room as it had. */
static uint64_t own_memory(mt_engine *e, uint64_t weights)
{
    if (!e->measured)
        e->own = measure_own(e, weights);
    e->measured = true;
    return e->own;
}

/* Bytes of `bytes` for pixels, which the server's threads decode: a part, but enough for a photograph. */
static uint64_t share_pictures(mt_engine *e, uint64_t bytes)
{
    uint64_t pixels = e->params.pictures;
    if (!e->tower.cursor)
        return 0;
    if (pixels == MT_ENGINE_CHOOSE) {
        pixels = bytes / 8 < PICTURES ? bytes / 8 : PICTURES;
        pixels = pixels > PICTURES_LEAST ? pixels : bytes / 4 < PICTURES_LEAST ? bytes / 4 : PICTURES_LEAST;
    }
    e->stats.bytes_pictures = pixels < bytes ? pixels : bytes;
    return e->stats.bytes_pictures;
}

uint64_t mt_engine_requests(uint64_t bytes, uint64_t parts)
{
    const uint64_t usual = MT_MIN(bytes / parts, MT_LIMIT_REQUESTS_BYTES);
    return MT_MAX(usual, MT_MIN(bytes / (parts / 2), MT_LIMIT_REQUESTS_LEAST));
}

/* Bytes of `bytes` for requests, which the server's threads read and prepare. */
static uint64_t share_requests(mt_engine *e, uint64_t bytes)
{
    uint64_t requests = e->params.requests;
    if (requests == MT_ENGINE_CHOOSE)
        requests = mt_engine_requests(bytes, REQUESTS_SHARE);
    e->stats.bytes_requests = requests < bytes ? requests : bytes;
    return e->stats.bytes_requests;
}

/* Bytes of `bytes` for features of pictures. */
static uint64_t share_features(mt_engine *e, uint64_t bytes)
{
    uint64_t media = e->params.media_cache;
    if (!e->tower.cursor)
        return 0;
    if (media == 0)
        media = bytes / 8 < MEDIA_CACHE ? bytes / 8 : MEDIA_CACHE;
    media = media < bytes ? media : bytes;
    e->features.count = media / (e->tower.width * sizeof(float));
    return media;
}

/* Makes the host store: what is left of the host's memory keeps what the device's cache has no room for. */
static void reserve_host_store(mt_engine *e, uint64_t left)
{
    const uint64_t wanted = e->params.host_cache;
    size_t page = 0;
    for (size_t g = 0; g < e->spec->group_count; g++) {
        const mt_kv_shape shape = mt_model_kv_shape(e->spec, g, mt_kv_cached_type(e->dev));
        page += mt_kv_page_bytes(e->dev, &shape);
    }
    e->host_store =
        mt_host_store_new(wanted == MT_ENGINE_CHOOSE ? left / UNUSED_SHARE * (UNUSED_SHARE - 1) : wanted, page);
}

static bool reserve_features(mt_engine *e, mt_error *err)
{
    mt_features *f = &e->features;
    if (!e->tower.cursor)
        return true;
    e->feature_cache = mt_feature_cache_new(f->count);
    f->rows = mt_tensor_reserve(e->set, f->count > 0 ? f->count : 1, e->tower.width, err);
    f->some = mt_tensor_new(e->set, MT_FEATURES_LOOKED_AT, e->tower.width);
    f->sound = mt_tensor_new(e->set, MT_FEATURES_LOOKED_AT, 1);
    f->which = mt_index_new(e->set, MT_FEATURES_LOOKED_AT);
    f->reading = mt_reading_new(e->set, MT_FEATURES_LOOKED_AT * sizeof(float));
    mt_model_set_features(e->model, f->rows);
    return f->rows != NULL;
}

/* Encoders alone take a fixed amount: checks that it is within the limit. */
static bool check_encoders(const mt_engine *e, uint64_t bytes, mt_error *err)
{
    return e->params.memory == 0 || bytes <= e->params.memory ||
           mt_fail(err, MT_E_MEMORY, "\"--memory\" is %.0f MiB and the encoders take %.0f; raise it",
                   (double)e->params.memory / (1 << 20), (double)bytes / (1 << 20));
}

/* Bytes that are left once weights and working memory are loaded. */
typedef struct budget {
    bool apart;            /* the device has memory of its own */
    uint64_t memory, host; /* limits of the device and of the host: equal where they are the same memory */
    /* in use: working memory, and what is set aside for small requests */
    uint64_t working, aside;
    uint64_t left, beside; /* left for the cache; beside: left on the host where the device has memory of its own */
    uint64_t *room;        /* points to the one of these two that requests and pixels are taken from */
} budget;

static uint64_t less(uint64_t all, uint64_t taken)
{
    return all > taken ? all - taken : 0;
}

static void measure(mt_engine *e, budget *b, uint64_t weights)
{
    const uint64_t device = mt_device_bytes(e->dev), own = own_memory(e, weights);
    *b = (budget){.apart = mt_device_apart(e->dev),
                  .memory = mt_engine_memory(&e->params, e->dev),
                  .host = mt_engine_host_memory(&e->params, e->dev)};
    const uint64_t voices = e->params.voices ? 0 : mt_voices_bytes(b->host, e->places.all + e->text_places);
    const uint64_t tier =
        (e->params.disk || e->params.remote || (e->params.host_cache && b->apart)) && e->model ? mt_keep_bytes(e) : 0;
    b->aside =
        tier + voices + e->params.besides + (e->params.shares ? 0 : MT_LIMIT_REQUESTS_ASIDE) + e->params.constraints;
    b->working = b->apart ? less(device, weights) : (own > device ? own : device) + b->aside;
    b->left = less(b->memory, weights + b->working);
    b->beside = b->apart ? less(b->host, own + b->aside) : 0;
    b->room = b->apart ? &b->beside : &b->left;
}

/* Bytes of cache that one sequence of the usual length needs. */
static uint64_t least_cache(const mt_engine *e)
{
    const size_t all = e->params.context ? e->params.context : e->spec->context;
    const size_t tokens = e->params.context || all < MT_LIMIT_USABLE_CONTEXT ? all : MT_LIMIT_USABLE_CONTEXT;
    /* pictures and states get less than half of the memory */
    const bool shared = e->tower.cursor || e->spec->state.layers;
    uint64_t bytes = 0;
    for (size_t g = 0; g < e->spec->group_count; g++) {
        const mt_kv_shape shape = mt_model_kv_shape(e->spec, g, mt_kv_cached_type(e->dev));
        bytes += mt_kv_page_bytes(e->dev, &shape) * (tokens / MT_PAGE_TOKENS + 2);
    }
    if (e->spec->state.layers)
        bytes += 2 * (STATES_LEAST + 1) * mt_state_slot_bytes(e->dev, &e->spec->state);
    return shared ? 2 * bytes : bytes;
}

/* Where other engines run in the process: sets *params.need, and fails where the memory is too little to be of use.
   Constraints count only where they are in the same memory. */
static bool check_share(const mt_engine *e, const budget *b, uint64_t weights, mt_error *err)
{
    const uint64_t given = b->apart ? 0 : e->params.constraints;
    const uint64_t least = weights + b->working - given + (e->model ? least_cache(e) : 0);
    const uint64_t part = least / (MT_LIMIT_CONSTRAINT_SHARE - 1) + 1;
    const uint64_t constraints = part < MT_LIMIT_CONSTRAINT_BYTES ? part : MT_LIMIT_CONSTRAINT_BYTES;
    const uint64_t need = least + (given ? constraints : 0);
    if (!e->params.shares)
        return true;
    if (e->params.need)
        *e->params.need = need;
    return need <= b->memory || mt_fail(err, MT_E_MEMORY, "it needs %.0f MiB and has %.0f", (double)need / (1 << 20),
                                        (double)b->memory / (1 << 20));
}

static bool fail_budget(const budget *b, uint64_t weights, mt_error *err)
{
    const double mib = 1 << 20;
    return mt_fail(
        err, MT_E_MEMORY,
        "\"--memory\" is %.0f MiB; weights take %.0f and working memory %.0f, which leaves no cache: raise it, "
        "or lower --batch-tokens or --max-sequences%s",
        (double)b->memory / mib, (double)weights / mib, (double)b->working / mib,
        b->apart ? ", or use --device cpu" : "");
}

static void report(const mt_engine *e, uint64_t cache)
{
    const double mib = 1 << 20;
    const uint64_t features = e->features.count * e->tower.width * sizeof(float);
    if (mt_device_apart(e->dev))
        mt_log_info("engine.memory",
                    "%.0f MiB of the GPU's %.0f: cache and states %.0f, features of pictures %.0f, weights and working "
                    "memory the rest; of the host's memory %.0f for requests, %.0f for pictures, %.0f for what the "
                    "cache has no room for",
                    (double)mt_device_bytes(e->dev) / mib, (double)mt_device_memory(e->dev) / mib, (double)cache / mib,
                    (double)features / mib, (double)e->stats.bytes_requests / mib,
                    (double)e->stats.bytes_pictures / mib,
                    (double)(e->host_store ? mt_host_store_look(e->host_store).limit : 0) / mib);
}

/* Bytes of a page of each group and of a state, by which the cache's use is told in bytes. */
static void note_sizes(mt_engine *e)
{
    for (size_t g = 0; g < e->spec->group_count; g++) {
        const mt_kv_shape shape = mt_model_kv_shape(e->spec, g, mt_kv_cached_type(e->dev));
        e->page_bytes[g] = mt_kv_page_bytes(e->dev, &shape);
    }
    e->state_bytes = e->spec->state.layers ? mt_state_slot_bytes(e->dev, &e->spec->state) : 0;
}

/* The cache gets what the budget leaves, but no more than all sequences together could use. */
bool mt_engine_reserve(mt_engine *e, uint64_t weights, mt_error *err)
{
    const size_t context = e->params.context ? e->params.context : e->spec->context;
    size_t pages[MT_KV_GROUPS] = {0}, wanted = e->params.cache / MT_PAGE_TOKENS;
    budget b;
    measure(e, &b, weights);
    e->stats.bytes_memory = b.memory;
    e->stats.bytes_weights = weights;
    if (!check_share(e, &b, weights, err))
        return false;
    if (!e->model)
        return check_encoders(e, (b.apart ? 0 : weights) + mt_device_bytes(e->dev), err);
    if (!wanted)
        wanted = (e->params.sequences + 1) * (context / MT_PAGE_TOKENS + 1);
    const size_t states = share_states(e, &b.left, wanted), spare = share_spare(e, &b.left);
    *b.room -= share_requests(e, *b.room);
    *b.room -= share_pictures(e, *b.room);
    share_pages(e, b.left - share_features(e, b.left), pages);
    for (size_t g = 0; g < e->spec->group_count; g++)
        pages[g] = pages[g] < wanted ? pages[g] : wanted;
    if (pages[0] < 2)
        return fail_budget(&b, weights, err);
    if (e->stats.bytes_requests == 0 && e->params.requests == MT_ENGINE_CHOOSE)
        return mt_fail(err, MT_E_MEMORY, "\"--host-memory\" is %.0f MiB, which leaves nothing for requests; raise it",
                       (double)b.host / (1 << 20));
    const uint64_t device = mt_device_bytes(e->dev);
    if (!mt_model_reserve(e->model, pages, states + spare, err))
        return false;
    const uint64_t cache = mt_device_bytes(e->dev) - device;
    if (!reserve_features(e, err))
        return false;
    if (e->params.host_cache && (b.apart || e->params.host_cache != MT_ENGINE_CHOOSE))
        reserve_host_store(e, b.beside);
    mt_cache_groups groups = {.count = e->spec->group_count, .states = states, .spare = spare};
    for (size_t g = 0; g < groups.count; g++)
        groups.window[g] = e->spec->groups[g].window ? e->spec->groups[g].window : UINT32_MAX;
    e->tree = mt_tree_new(&groups, pages, e->places.all + 1);
    /* one page may be held as the source of a copy */
    const size_t fits = (pages[0] - 1) * MT_PAGE_TOKENS;
    e->context = context < fits ? context : fits;
    e->stats.bytes_working = b.apart ? b.working : b.working - e->params.constraints;
    e->stats.bytes_constraints = e->params.constraints;
    e->stats.bytes_cache = cache;
    note_sizes(e);
    report(e, cache);
    return true;
}
