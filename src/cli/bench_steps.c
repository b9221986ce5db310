/* Measures steps of the model as the engine would run them, with arbitrary tokens: prompts in chunks, then answers of
   several sequences together; the same at depths, with a cache that holds copies of one prompt; and once more with
   every operation timed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/bench.h"

enum { TIMINGS = 1 << 16, TIMED_STEPS = 12, DEPTH_STEPS = 8 };

typedef struct bench {
    mt_model_bench *b;
    mt_model *model;
    mt_set *set;
    mt_reading *reading; /* copies logits from the device */
    size_t pages;
    /* Token of each row; page tables of all sequences; rows whose logits are computed */
    uint32_t *tokens, *page, *wanted;
    mt_position *positions;
    mt_span *spans;
    mt_piece *pieces;
    uint64_t hash;  /* of all logits so far, see mt_bench_hash */
    uint64_t begin; /* nanoseconds on the monotonic clock: when the last step began */
} bench;

static double largest(const mt_bench_list *list)
{
    double most = 0;
    for (size_t i = 0; i < list->count; i++)
        most = fmax(most, list->at[i]);
    return most;
}

static size_t pages_for(double tokens)
{
    return ((size_t)tokens + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS;
}

static void add_hash(bench *b, const mt_tensor *logits, size_t rows)
{
    const size_t vocab = b->b->o.spec.vocab;
    mt_read_rows(b->b->o.dev, b->reading, logits, 0, rows);
    for (size_t r = 0; r < rows; r++)
        b->hash = mt_bench_hash(b->hash, mt_reading_row(b->b->o.dev, b->reading, r), vocab);
}

/* Runs one step with `rows` rows for each of `sequences` sequences, all at `position`. A sequence has `each` pages;
   those of the first begin at page `first`. Returns seconds. */
static double step(bench *b, size_t sequences, size_t rows, size_t position, size_t first, size_t each)
{
    const size_t vocab = b->b->o.spec.vocab;
    mt_batch batch = {
        .rows = sequences * rows, .tokens = b->tokens, .positions = b->positions, .spans = sequences, .span = b->spans};
    for (size_t s = 0; s < sequences; s++) {
        const uint32_t *table = b->page + first + s * each; /* all groups of layers use the same page numbers */
        const uint32_t slot = (uint32_t)(table[0] / each);
        b->pieces[s] = (mt_piece){.rows = (uint32_t)rows, .slot = slot};
        b->spans[s] = (mt_span){.row = (uint32_t)(s * rows),
                                .rows = (uint32_t)rows,
                                .position = (uint32_t)position,
                                .pages = {table, table, table, table},
                                .state = position ? slot : MT_NO_PAGE,
                                .pieces = 1,
                                .piece = &b->pieces[s],
                                .memo = (uint32_t)s}; /* a draft head keeps state by this number */
        b->wanted[s] = (uint32_t)(s * rows + rows - 1);
        for (size_t i = 0; i < rows; i++) {
            b->tokens[s * rows + i] = (uint32_t)((position + i) * 2654435761u + s * 40503u) % (uint32_t)vocab;
            const uint32_t at = (uint32_t)(position + i);
            b->positions[s * rows + i] = (mt_position){{at, at, at}};
        }
    }
    b->begin = mt_clock_ns();
    const mt_tensor *logits = mt_model_step(b->model, &batch, b->wanted, sequences);
    mt_device_wait(b->b->o.dev);
    const double seconds = (double)(mt_clock_ns() - b->begin) * 1e-9;
    add_hash(b, logits, sequences);
    return seconds;
}

/* Runs a prompt in chunks; its pages begin at `first`. Returns seconds. */
static double prefill(bench *b, size_t tokens, size_t first, size_t each)
{
    const size_t chunk = b->b->rows;
    double seconds = 0;
    for (size_t at = 0; at < tokens; at += chunk)
        seconds += step(b, 1, tokens - at < chunk ? tokens - at : chunk, at, first, each);
    return seconds;
}

/* Bytes of weights that a step with one token for each sequence reads, counted in one more such step. */
static double weights_of_step(bench *b, size_t sequences, size_t position, size_t each)
{
    mt_timings timings = {.at = mt_alloc_array(TIMINGS, sizeof(*timings.at)), .capacity = TIMINGS};
    double bytes = 0;
    mt_timed *timed = mt_timed_begin(b->b->o.dev, &timings);
    step(b, sequences, 1, position, 0, each);
    mt_timed_end(timed);
    for (size_t i = 0; i < timings.count; i++)
        bytes += timings.at[i].work.weights;
    mt_free(timings.at);
    return bytes;
}

static const mt_bench_column step_columns[] = {
    {"prompt", "prompt tokens", 0},        {"batch", "side by side", 0},      {"prompt_rate", "prompt tokens/s", 1},
    {"answer_rate", "answer tokens/s", 1}, {"step_ms", "ms a step", 2},       {"weights_rate", "GB/s of weights", 1},
    {"memory_share", "% of memory", 0},    {"hash", "logits", MT_BENCH_TEXT},
};

static void measure_steps(bench *b, mt_chart *chart)
{
    mt_model_bench *m = b->b;
    mt_bench_section *s =
        mt_report_section(m->report, "steps", "Prompts, then answers", step_columns, MT_COUNT(step_columns));
    snprintf(
        s->note, sizeof(s->note),
        "Each prompt by itself, in chunks of %zu; then %zu tokens of all answers side by side. Of experts, weights "
        "are those that rows of equal chances choose. What stands last is equal where all logits are.",
        m->rows, m->tokens);
    for (size_t j = 0; j < m->batches.count; j++) {
        const size_t batch = (size_t)m->batches.at[j];
        for (size_t i = 0; i < m->prompts.count; i++) {
            const size_t prompt = (size_t)m->prompts.at[i], each = pages_for(m->prompts.at[i] + (double)m->tokens + 1);
            double read = 0, answer = 0;
            char hash[32];
            mt_log_passing("bench.steps", "prompts of %zu tokens, %zu side by side", prompt, batch);
            b->hash = MT_BENCH_HASH;
            for (size_t k = 0; k < batch; k++)
                read += prefill(b, prompt, k * each, each);
            for (size_t t = 0; t < m->tokens; t++)
                answer += step(b, batch, 1, prompt + t, 0, each);
            snprintf(hash, sizeof(hash), "hash %016llx", (unsigned long long)b->hash);
            json_t *row = json_pack("{s:I, s:I, s:f, s:s}", "prompt", (json_int_t)prompt, "batch", (json_int_t)batch,
                                    "prompt_rate", (double)(prompt * batch) / read, "hash", hash);
            if (m->tokens) {
                const double steps = (double)m->tokens, bytes = weights_of_step(b, batch, prompt + m->tokens, each);
                const double rate = bytes * steps / answer;
                json_object_set_new(row, "weights_bytes", json_real(bytes));
                json_object_set_new(row, "answer_rate", json_real((double)batch * steps / answer));
                json_object_set_new(row, "step_ms", json_real(1e3 * answer / steps));
                json_object_set_new(row, "weights_rate", json_real(rate * 1e-9));
                json_object_set_new(row, "memory_share", json_real(100 * rate / m->peaks.bandwidth));
            }
            if (j == 0)
                mt_chart_point(&chart->line[0], (double)prompt, (double)prompt * (double)batch / read);
            mt_report_row(s, row);
        }
    }
    mt_report_show(m->report, s);
}

static const mt_bench_column depth_columns[] = {
    {"depth", "tokens before", 0},         {"batch", "side by side", 0},        {"step_ms", "ms a step", 2},
    {"answer_rate", "answer tokens/s", 1}, {"cache_mb", "MB of cache read", 1},
};

/* Whether there are enough pages for a measurement at this depth and batch. */
static bool fits(const bench *b, double depth, double batch)
{
    return (double)pages_for(depth + DEPTH_STEPS) * batch <= (double)b->pages &&
           depth + DEPTH_STEPS <= (double)b->b->o.spec.context;
}

static double cache_bytes(const mt_model_bench *m, double depth)
{
    double bytes = 0;
    for (size_t g = 0; g < m->o.spec.group_count; g++) {
        const mt_kv_shape shape = mt_model_kv_shape(&m->o.spec, g, mt_kv_cached_type(m->o.dev));
        const double window = m->o.spec.groups[g].window;
        bytes +=
            (double)mt_kv_page_bytes(m->o.dev, &shape) / MT_PAGE_TOKENS * (window > 0 ? fmin(window, depth) : depth);
    }
    return bytes;
}

/* Copies the pages that a prompt has filled for the first sequence to all others. */
static void fill_pages(bench *b, size_t count, size_t known)
{
    for (size_t i = known; i < count; i++) {
        uint32_t to[MT_KV_GROUPS], from[MT_KV_GROUPS];
        for (size_t g = 0; g < MT_KV_GROUPS; g++) {
            to[g] = g < b->b->o.spec.group_count ? b->page[i] : MT_NO_PAGE;
            from[g] = b->page[i % known];
        }
        mt_model_copy_pages(b->model, to, from);
    }
}

static void measure_depths(bench *b, mt_chart *chart)
{
    mt_model_bench *m = b->b;
    mt_bench_section *s =
        mt_report_section(m->report, "depths", "Answers by depth", depth_columns, MT_COUNT(depth_columns));
    snprintf(s->note, sizeof(s->note),
             "Steps of one token an answer, behind a cache of copies of a prompt's. What is left out does not fit.");
    const size_t chunk = pages_for((double)m->rows), known = chunk < b->pages ? chunk : b->pages;
    prefill(b, known * MT_PAGE_TOKENS, 0, known);
    fill_pages(b, b->pages, known);
    for (size_t j = 0; j < m->depth_batches.count; j++) {
        char label[32];
        const size_t batch = (size_t)m->depth_batches.at[j];
        snprintf(label, sizeof(label), "%zu side by side", batch);
        mt_chart_line *line = mt_chart_add(chart, label, m->depths.count);
        for (size_t i = 0; i < m->depths.count; i++) {
            const double depth = m->depths.at[i];
            const size_t each = pages_for(depth + DEPTH_STEPS);
            double seconds = 0;
            if (!fits(b, depth, (double)batch))
                continue;
            mt_log_passing("bench.depths", "answers behind %.0f tokens, %zu side by side", depth, batch);
            /* Not measured: the caches of the processor do not hold the data yet */
            step(b, batch, 1, (size_t)depth, 0, each);
            for (size_t t = 1; t < DEPTH_STEPS; t++)
                seconds += step(b, batch, 1, (size_t)depth + t, 0, each);
            const double steps = DEPTH_STEPS - 1;
            mt_report_row(s, json_pack("{s:f, s:I, s:f, s:f, s:f}", "depth", depth, "batch", (json_int_t)batch,
                                       "step_ms", 1e3 * seconds / steps, "answer_rate", (double)batch * steps / seconds,
                                       "cache_mb", 1e-6 * (double)batch * cache_bytes(m, depth)));
            mt_chart_point(line, depth, (double)batch * steps / seconds);
        }
    }
    mt_report_show(m->report, s);
}

/* Times every operation of a step, either a chunk of a prompt or one token for each answer. Keeps the fastest of
   `tries` steps, because other programs share the machine. */
static void time_step(bench *b, const char *name, size_t sequences, size_t rows, size_t tries)
{
    mt_model_bench *m = b->b;
    const size_t at = rows > 1 ? 0 : (size_t)m->prompts.at[0], each = pages_for((double)(at + rows + tries));
    mt_timing *room = mt_alloc_array(2 * TIMINGS, sizeof(*room)), *kept = room + TIMINGS;
    mt_timings timings = {.at = room, .capacity = TIMINGS};
    char about[96];
    mt_step_times best = {.name = name, .about = about, .wall = UINT64_MAX};
    if (rows > 1)
        snprintf(about, sizeof(about), "%zu tokens of a prompt", rows);
    else
        snprintf(about, sizeof(about), "%zu answer%s, %zu tokens before", sequences, sequences > 1 ? "s" : "", at);
    mt_log_passing("bench.operations", "operations of %s", about);
    mt_timed *timed = mt_timed_begin(m->o.dev, &timings);
    for (size_t i = 0; i < tries; i++) {
        timings.count = 0;
        const uint64_t wall = (uint64_t)(1e9 * step(b, sequences, rows, rows > 1 ? 0 : at + i, 0, each));
        while (timings.count > 0 && timings.at[timings.count - 1].begin >= b->begin + wall)
            timings.count--; /* the last operation is the copy of the logits, which only this measurement makes */
        if (wall >= best.wall)
            continue;
        best.wall = wall;
        best.begin = b->begin;
        best.at = timings.at;
        best.count = timings.count;
        timings.at = kept;
        kept = best.at;
    }
    mt_timed_end(timed);
    mt_bench_operations(m, &best);
    mt_free(room);
}

/* The pages that the largest measurement needs, without depths that would need more than a quarter of the machine's
   memory or three quarters of the memory of a GPU, which no other program shares. */
static size_t count_pages(const mt_model_bench *m)
{
    const double most = largest(&m->batches);
    const double own =
        most * (double)pages_for(largest(&m->prompts) + (double)m->tokens + TIMED_STEPS + (double)m->rows);
    const double share = mt_device_apart(m->o.dev) ? 0.75 : 0.25;
    const double room = (double)mt_device_memory(m->o.dev) * share / fmax(cache_bytes(m, MT_PAGE_TOKENS), 1);
    double deep = 0;
    for (size_t i = 0; mt_bench_wants(m, "depths") && i < m->depths.count; i++)
        for (size_t j = 0; j < m->depth_batches.count; j++) {
            const double pages = (double)pages_for(m->depths.at[i] + DEPTH_STEPS) * m->depth_batches.at[j];
            if (pages <= room)
                deep = fmax(deep, pages);
        }
    return (size_t)fmax(own, deep);
}

static bool start(bench *b, mt_error *err)
{
    const mt_model_bench *m = b->b;
    const size_t batch = (size_t)fmax(largest(&m->batches), largest(&m->depth_batches));
    const size_t rows = batch > m->rows ? batch : m->rows;
    const mt_model_params params = {.rows = rows, .logits = batch, .places = batch};
    b->pages = count_pages(m);
    const size_t all[MT_KV_GROUPS] = {b->pages, b->pages, b->pages, b->pages};
    b->model = mt_model_new(m->o.dev, &m->o.spec, &m->o.weights, &params, err);
    if (!b->model || !mt_model_reserve(b->model, all, batch, err))
        return false;
    b->set = mt_set_new(m->o.dev);
    b->reading = mt_reading_new(b->set, batch * m->o.spec.vocab * sizeof(float));
    b->tokens = mt_alloc_array(rows, sizeof(*b->tokens));
    b->positions = mt_alloc_array(rows, sizeof(*b->positions));
    b->wanted = mt_alloc_array(batch, sizeof(*b->wanted));
    b->spans = mt_alloc_array(batch, sizeof(*b->spans));
    b->pieces = mt_alloc_array(batch, sizeof(*b->pieces));
    b->page = mt_alloc_array(b->pages, sizeof(*b->page));
    for (size_t i = 0; i < b->pages; i++)
        b->page[i] = (uint32_t)i;
    return true;
}

static void measure(bench *b)
{
    mt_model_bench *m = b->b;
    const size_t prompt = (size_t)m->prompts.at[0];
    mt_chart *prompts = mt_report_chart(m->report, "Prompts by length", "tokens of the prompt", "tokens/s");
    mt_chart_add(prompts, "one prompt at a time", m->prompts.count);
    if (mt_bench_wants(m, "steps"))
        measure_steps(b, prompts);
    if (m->prompts.count < 2) { /* a chart of one point says nothing */
        mt_chart_free(prompts);
        m->report->charts--;
    }
    if (mt_bench_wants(m, "operations")) {
        time_step(b, "prompt", 1, prompt < m->rows ? prompt : m->rows, 2);
        if (m->tokens)
            time_step(b, "answer", (size_t)m->batches.at[0], 1, TIMED_STEPS);
        mt_report_show(m->report, mt_report_find(m->report, "operations"));
        mt_report_show(m->report, mt_report_find(m->report, "losses"));
    }
    if (mt_bench_wants(m, "depths"))
        measure_depths(b, mt_report_chart(m->report, "Answers by depth", "tokens before the answer", "tokens/s"));
}

bool mt_bench_steps(mt_model_bench *m, mt_error *err)
{
    bench b = {.b = m};
    const bool ok = start(&b, err);
    if (ok)
        measure(&b);
    mt_set_free(b.set);
    mt_model_free(b.model);
    mt_free(b.tokens);
    mt_free(b.positions);
    mt_free(b.wanted);
    mt_free(b.spans);
    mt_free(b.pieces);
    mt_free(b.page);
    return ok;
}
