/* GET /metrics: counters and gauges in Prometheus' text format. A metric that vLLM has, too, with the same meaning, has
   vLLM's name. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/confine.h"
#include "base/limits.h"
#include "media/decode_process.h"
#include "ranks/ranks.h"
#include "server/inside.h"
#include "server/lockdown.h"

#define METRICS 256 /* more than there are */

/* The format wants all lines of a metric in one place, but values come model by model. So each metric collects its own
   text, and all texts are written at the end. */
typedef struct metric {
    const char *name;
    mt_buf text;
} metric;

typedef struct sheet {
    metric metrics[METRICS];
    size_t count;
} sheet;

/* Where values are written to, and for which model. */
typedef struct writer {
    sheet *sheet;
    const char *model; /* the label model_name="..."; "": the metric is of no model */
} writer;

/* The text of a metric, which is added where it is new. */
static mt_buf *text_of(const writer *w, const char *name)
{
    sheet *s = w->sheet;

    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->metrics[i].name, name) == 0)
            return &s->metrics[i].text;
    if (s->count == METRICS) /* more metrics than expected: the rest lands in the last one */
        return &s->metrics[METRICS - 1].text;
    s->metrics[s->count].name = name;
    mt_buf_init(&s->metrics[s->count].text, 1u << 20);
    return &s->metrics[s->count++].text;
}

/* As text_of, with the metric's description where it is new. Borrows name until all is written. */
static mt_buf *open_metric(const writer *w, const char *name, const char *type, const char *help)
{
    mt_buf *out = text_of(w, name);

    if (out->len == 0)
        mt_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
    return out;
}

static void counter(const writer *w, const char *name, uint64_t value, const char *help)
{
    mt_buf_printf(open_metric(w, name, "counter", help), "%s{%s} %" PRIu64 "\n", name, w->model, value);
}

static void gauge(const writer *w, const char *name, double value, const char *help)
{
    mt_buf_printf(open_metric(w, name, "gauge", help), "%s{%s} %.10g\n", name, w->model, value);
}

static const char *comma(const writer *w)
{
    return *w->model ? "," : "";
}

static void labelled(const writer *w, const char *name, const char *label, const char *value, uint64_t count)
{
    mt_buf_printf(text_of(w, name), "%s{%s%s%s=\"%s\"} %" PRIu64 "\n", name, w->model, comma(w), label, value, count);
}

/* unit: what bounds of the histogram are multiplied by; see engine/stats.h. */
static void distribution(const writer *w, const char *name, const mt_histogram *h, double unit, const char *help)
{
    mt_buf *out = open_metric(w, name, "histogram", help);
    uint64_t below = 0;

    for (size_t i = 0; i < MT_HISTOGRAM_BUCKETS; i++) {
        below += h->bucket[i];
        mt_buf_printf(out, "%s_bucket{%s,le=\"%.8g\"} %" PRIu64 "\n", name, w->model, mt_histogram_bound(i) * unit,
                      below);
    }
    mt_buf_printf(out, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, w->model, h->count);
    mt_buf_printf(out, "%s_sum{%s} %.9g\n%s_count{%s} %" PRIu64 "\n", name, w->model, h->sum, name, w->model, h->count);
}

static void histogram(const writer *w, const char *name, const mt_histogram *h, const char *help)
{
    distribution(w, name, h, MT_HISTOGRAM_SECONDS, help);
}

static void counts(const writer *w, const char *name, const mt_histogram *h, const char *help)
{
    distribution(w, name, h, 1, help);
}

/* Appends the label with a model's name. Backslash and quote are escaped; a line feed becomes a blank. */
static void add_label(mt_buf *out, const char *value)
{
    mt_buf_puts(out, "model_name=\"");
    for (const char *p = value; *p; p++) {
        if (*p == '\\' || *p == '"')
            mt_buf_puts(out, "\\");
        mt_buf_add(out, *p == '\n' ? " " : p, 1);
    }
    mt_buf_puts(out, "\"");
}

static void write_requests(const writer *w, const mt_stats *s)
{
    static const char name[] = "vllm:request_success_total";
    static const char *const reasons[] = {[MT_FINISH_STOP] = "stop",
                                          [MT_FINISH_LENGTH] = "length",
                                          [MT_FINISH_CANCELLED] = "abort",
                                          [MT_FINISH_ERROR] = "error"};

    gauge(w, "vllm:num_requests_running", (double)s->running, "Answers that are being computed.");
    gauge(w, "vllm:num_requests_waiting", (double)s->waiting, "Answers that wait for their place.");
    open_metric(w, name, "counter", "Answers that have ended, by the reason.");
    for (size_t i = 0; i < MT_COUNT(reasons); i++)
        labelled(w, name, "finished_reason", reasons[i], s->finished[i]);
    counter(w, "motet_repeated_total", s->repeated, "Answers that were ended because they went in circles.");
    counter(w, "motet_thinking_cut_total", s->thinking_cut, "Answers whose thinking was ended at its budget.");
    counter(w, "vllm:num_preemptions_total", s->preemptions, "Answers set aside for others.");
    counter(w, "motet_seats_yielded_total", s->yields, "Of these, answers set aside for a client with fewer seats.");
}

static void write_tokens(const writer *w, const mt_stats *s)
{
    counter(w, "vllm:prompt_tokens_total", s->prompt_tokens, "Prompt tokens, cached ones included.");
    counter(w, "vllm:generation_tokens_total", s->generated_tokens, "Tokens generated.");
    counter(w, "motet_answer_steps_total", s->answer_steps,
            "Steps of answers; tokens over these are what guessing gains.");
    counter(w, "vllm:spec_decode_num_drafts_total", s->drafts, "Rows of answers that had guesses with them.");
    counter(w, "vllm:spec_decode_num_draft_tokens_total", s->draft_tokens, "Tokens guessed ahead.");
    counter(w, "vllm:spec_decode_num_accepted_tokens_total", s->draft_accepted, "Guesses that were right.");
    counter(w, "motet_model_draft_tokens_total", s->model_draft_tokens, "Of these, tokens of a head or a drafter.");
    counter(w, "motet_model_accepted_tokens_total", s->model_draft_accepted, "Of these, guesses that were right.");
    counter(w, "vllm:prefix_cache_queries_total", s->prompt_tokens, "Prompt tokens looked up in the prefix cache.");
    counter(w, "vllm:prefix_cache_hits_total", s->cached_tokens, "Prompt tokens found there.");
    counter(w, "vllm:gpu_prefix_cache_queries_total", s->prompt_tokens, "Both, as older routers call them.");
    counter(w, "vllm:gpu_prefix_cache_hits_total", s->cached_tokens, "Both, as older routers call them.");
    counter(w, "vllm:prompt_tokens_cached_total", s->cached_tokens, "Those found, under another name of vLLM's.");
}

static void write_cache(const writer *w, const mt_stats *s)
{
    size_t total = 0, held = 0;
    static const char name[] = "motet_prefix_lookups_total";

    for (size_t g = 0; g < MT_KV_GROUPS; g++) {
        total += s->pages_total[g];
        held += s->pages_held[g];
    }
    gauge(w, "vllm:kv_cache_usage_perc", total ? (double)held / (double)total : 0,
          "Share of the cache that running answers hold; 1 is all of it.");
    gauge(w, "vllm:gpu_cache_usage_perc", total ? (double)held / (double)total : 0,
          "The same, as older routers call it.");
    mt_buf_printf(open_metric(w, "vllm:cache_config_info", "gauge", "How the cache is cut: tokens of a page, pages."),
                  "vllm:cache_config_info{%s,block_size=\"%d\",num_gpu_blocks=\"%zu\"} 1\n", w->model, MT_PAGE_TOKENS,
                  s->pages_total[0]);
    gauge(w, "motet_cache_pages_known", (double)s->pages_known, "Pages whose content can be reused.");
    counter(w, "motet_cache_evictions_total", s->evictions, "Pages forgotten to make room.");
    counter(w, "motet_canary_faults_total", s->canary_faults, "Free cache memory that was written (--debug-canary).");
    gauge(w, "motet_states", (double)s->states_total, "Slots for recurrent states.");
    gauge(w, "motet_states_held", (double)s->states_held, "Slots that sequences hold.");
    gauge(w, "motet_states_known", (double)s->states_known, "Recurrent states that requests can continue from.");
    counter(w, "motet_state_evictions_total", s->state_evictions, "Recurrent states forgotten to make room.");
    counter(w, "motet_kept_pages_total", s->keep.stored_pages,
            "Pages handed to what is below the cache: host memory, disk, a shared store.");
    counter(w, "motet_kept_states_total", s->keep.stored_states, "Recurrent states handed to it.");
    counter(w, "motet_kept_features_total", s->keep.stored_features, "Pieces of pictures' features handed to it.");
    counter(w, "motet_kept_skipped_total", s->keep.skipped, "Pages, states and features that it had no time for.");
    counter(w, "motet_restored_pages_total", s->keep.restored_pages, "Pages that came back from there.");
    counter(w, "motet_restored_states_total", s->keep.restored_states, "Recurrent states that came back.");
    counter(w, "motet_restored_features_total", s->keep.restored_features,
            "Parts of pictures whose features came back, so that nothing had to be encoded.");
    gauge(w, "motet_host_cache_bytes", (double)s->host_store.bytes,
          "Host memory with pages, states and features in it.");
    gauge(w, "motet_host_cache_limit_bytes", (double)s->host_store.limit,
          "What there may be (--host-memory leaves it); 0: the device's memory is the host's.");
    counter(w, "motet_host_cache_read_total", s->host_store.read, "Records that came from host memory.");
    counter(w, "motet_host_cache_evicted_total", s->host_store.evicted, "Records that made way there.");
    counter(w, "motet_restored_failed_total", s->keep.failed, "Times that what was expected did not come back.");
    open_metric(w, name, "counter", "Lookups of prompts, by why they did not find all; none found all they could.");
    for (size_t i = 0; i < MT_MISS_COUNT; i++)
        labelled(w, name, "miss", mt_miss_name((mt_miss)i), s->misses[i]);
}

static void write_constraints(const writer *w, const mt_constraints_stats *c, const mt_stats *s)
{
    mt_buf *out;

    counter(w, "motet_constraints_total", c->asked, "Requests whose answer has to follow a constraint.");
    counter(w, "motet_constraints_compiled_total", c->compiled,
            "Constraints that were not known and had to be compiled.");
    counter(w, "motet_constraints_refused_total", c->refused, "Constraints that could not be compiled.");
    gauge(w, "motet_constraints_kept", (double)c->kept, "Constraints that are kept compiled.");
    gauge(w, "motet_constraint_bytes", (double)c->bytes,
          "The vocabulary's index and all compiled constraints, kept or in use.");
    counter(w, "motet_constraints_busy_total", c->busy, "Requests for which there was no room to compile.");
    counter(w, "motet_constraint_masks_total", s->masks.asked, "Tokens of constrained answers.");
    counter(w, "motet_constraint_masks_computed_total", s->masks.computed, "Of them, those whose mask was not known.");
    out = open_metric(w, "motet_constraint_seconds_total", "counter", "Time spent on constraints, by what for.");
    mt_buf_printf(out, "motet_constraint_seconds_total{%s,kind=\"compile\"} %.9g\n", w->model,
                  (double)c->compiling_ns * 1e-9);
    mt_buf_printf(out, "motet_constraint_seconds_total{%s,kind=\"mask\"} %.9g\n", w->model,
                  (double)s->masks.computing_ns * 1e-9);
}

/* Counters of answers and of the requests for them. */
static void write_sizes(const writer *w, const mt_stats *s)
{
    counts(w, "vllm:request_prompt_tokens", &s->answer_prompt, "Prompt tokens of answers that have ended.");
    counts(w, "vllm:request_generation_tokens", &s->answer_tokens, "Tokens of answers that have ended.");
    counts(w, "vllm:request_prefill_kv_computed_tokens", &s->answer_computed,
           "Prompt tokens of answers that were not found in the prefix cache.");
    counts(w, "vllm:request_params_n", &s->wanted_choices, "Answers that requests wanted.");
    counts(w, "vllm:request_params_max_tokens", &s->wanted_tokens, "Tokens that answers might have at most.");
    counts(w, "vllm:request_max_num_generation_tokens", &s->wanted_tokens, "The same, under another name of vLLM's.");
    counts(w, "vllm:iteration_tokens_total", &s->step_tokens, "Tokens computed in one step of the model.");
}

static void write_times(const writer *w, const mt_stats *s)
{
    histogram(w, "vllm:time_to_first_token_seconds", &s->first_token, "From arrival to the first token.");
    histogram(w, "vllm:inter_token_latency_seconds", &s->inter_token, "Between tokens of an answer.");
    histogram(w, "vllm:time_per_output_token_seconds", &s->inter_token, "The same, as older dashboards call it.");
    histogram(w, "vllm:request_time_per_output_token_seconds", &s->token_pace,
              "Between tokens of an answer, on its average.");
    histogram(w, "vllm:e2e_request_latency_seconds", &s->end_to_end, "From arrival to the end.");
    histogram(w, "vllm:request_queue_time_seconds", &s->queue, "From arrival to a place.");
    histogram(w, "vllm:request_prefill_time_seconds", &s->prefill, "From a place to the first token.");
    histogram(w, "vllm:request_decode_time_seconds", &s->decode, "From the first token to the last.");
    histogram(w, "vllm:request_inference_time_seconds", &s->inference, "From a place to the end.");
    histogram(w, "motet_step_seconds", &s->step, "One step of the model.");
    counter(w, "motet_steps_ahead_total", s->ahead_steps, "Steps that were begun while the one before ran.");
    counter(w, "motet_slow_steps_total", s->slow_steps, "Steps that took longer than --slow-step.");
    counter(w, "motet_step_rows_total", s->step_rows, "Rows computed in steps.");
}

static void write_media(const writer *w, const mt_stats *s, const mt_member_past *all, size_t used)
{
    counter(w, "motet_media_total", all->pictures, "Pictures and videos fetched and decoded.");
    histogram(w, "motet_media_prepare_seconds", &all->pictures_seconds,
              "Fetching and decoding the pictures of a request.");
    gauge(w, "motet_media_waiting_bytes", (double)used, "Pictures of requests that are prepared, wait or run.");
    counter(w, "motet_media_cache_hits_total", s->media_hits, "Pictures whose features were known.");
    counter(w, "motet_media_cache_misses_total", s->media_misses, "Pictures that were encoded.");
    counter(w, "motet_media_cache_evictions_total", s->media_evictions, "Features forgotten to make room.");
    gauge(w, "motet_media_cache_bytes", (double)s->media_bytes, "Features that are kept.");
    gauge(w, "motet_media_cache_total_bytes", (double)s->media_total, "Features that may be kept.");
    histogram(w, "motet_media_encode_seconds", &s->encode, "From the start of encoding pictures to their features.");
    gauge(w, "motet_media_encoder_seconds", s->encode_seconds, "Seconds the encoder has worked.");
}

static void write_memory(const writer *w, const mt_stats *s, bool alone)
{
    static const char name[] = "motet_memory_bytes";

    if (alone)
        gauge(w, "motet_memory_limit_bytes", (double)s->bytes_memory, "Memory that there may be in all (--memory).");
    open_metric(w, name, "gauge", "Memory reserved, by what for.");
    labelled(w, name, "kind", "weights", s->bytes_weights);
    labelled(w, name, "kind", "cache", s->bytes_cache);
    labelled(w, name, "kind", "working", s->bytes_working);
    labelled(w, name, "kind", "constraints", s->bytes_constraints);
    labelled(w, name, "kind", "pictures", s->bytes_pictures);
    if (alone)
        labelled(w, name, "kind", "requests", s->bytes_requests);
    if (s->device_memory) {
        gauge(w, "motet_device_bytes", (double)s->device_bytes, "Memory of the GPU that is taken.");
        gauge(w, "motet_device_memory_bytes", (double)s->device_memory,
              "Memory of the GPU that was free at the start.");
    }
    counter(w, "motet_device_faults_total", s->device_faults, "How often what computes has failed.");
}

/* Metrics that all models of a server share. */
static void write_fleet(const writer *w, mt_fleet *f)
{
    static const char name[] = "motet_memory_bytes";
    size_t waiting;

    pthread_mutex_lock(&f->lock);
    waiting = f->waiting;
    pthread_mutex_unlock(&f->lock);
    gauge(w, "motet_memory_limit_bytes", (double)f->memory, "Memory that there may be in all (--memory).");
    open_metric(w, name, "gauge", "Memory reserved, by what for.");
    labelled(w, name, "kind", "requests", f->requests);
    labelled(w, name, "kind", "server", f->apart - f->requests);
    gauge(w, "motet_calls_loading", (double)waiting, "Calls that wait for a model to be loaded.");
}

static void write_member(const writer *w, const mt_member *m)
{
    gauge(w, "motet_model_loaded", m->open ? 1 : 0, "Whether a model is loaded.");
    gauge(w, "motet_model_memory_bytes", (double)m->grant, "Memory that a model may have.");
    gauge(w, "motet_model_memory_used_bytes", m->open ? (double)mt_engine_used(m->served.engine) : 0,
          "Memory of a model's weights, its work, and what it has cached.");
    gauge(w, "motet_model_calls", (double)m->references, "Calls that have a model.");
    counter(w, "motet_model_loads_total", m->loads, "How often a model was loaded.");
}

/* The store that servers share (--cache-remote); r may be NULL. */
static void write_remote(const writer *w, mt_remote_store *r)
{
    static const char failures[] = "motet_remote_failures_total";
    const mt_remote_store_stats s = r ? mt_remote_store_look(r) : (mt_remote_store_stats){0};

    gauge(w, "motet_remote_up", s.up, "Whether the shared store answered last (--cache-remote).");
    gauge(w, "motet_remote_queued_bytes", (double)s.queued, "Records that wait to be sent there.");
    counter(w, "motet_remote_written_total", s.written, "Records sent.");
    counter(w, "motet_remote_read_total", s.read, "Records that came from there.");
    counter(w, "motet_remote_missed_total", s.missed, "Records that were expected there and did not come.");
    counter(w, "motet_remote_broken_total", s.broken, "Records that were not what was written, or not signed.");
    counter(w, "motet_remote_dropped_total", s.dropped, "Records that were not sent, since it was slow or gone.");
    counter(w, "motet_remote_refused_total", s.refused, "Records that it would not take.");
    open_metric(w, failures, "counter", "Times that it had no answer, by why: the log has more.");
    for (int i = 0; i < MT_REMOTE_STORE_FAILURES; i++)
        labelled(w, failures, "reason", mt_remote_store_failure_name((mt_remote_store_failure)i), s.failures[i]);
    counter(w, "motet_remote_sent_bytes_total", s.sent, "Bytes of records sent.");
    counter(w, "motet_remote_received_bytes_total", s.received, "Bytes of records received.");
}

/* The cache on disk (--cache-dir); d may be NULL. */
static void write_disk(const writer *w, mt_disk *d)
{
    const mt_disk_stats s = d ? mt_disk_look(d) : (mt_disk_stats){0};

    gauge(w, "motet_disk_bytes", (double)s.bytes, "Files of the cache on disk.");
    gauge(w, "motet_disk_limit_bytes", (double)s.limit, "What they may take (--cache-disk); 0: there are none.");
    gauge(w, "motet_disk_records", (double)s.records, "Pages and states that are known to be there.");
    gauge(w, "motet_disk_scanned", s.scanned, "Whether all is known that earlier processes have left there.");
    gauge(w, "motet_disk_failed", s.failed, "Whether the disk has failed, so that nothing more is kept there.");
    counter(w, "motet_disk_written_total", s.written, "Records written.");
    counter(w, "motet_disk_read_total", s.read, "Records read.");
    counter(w, "motet_disk_missed_total", s.missed, "Records that were wanted and not there.");
    counter(w, "motet_disk_broken_total", s.broken, "Records that were not what was written.");
    counter(w, "motet_disk_lost_bytes_total", s.lost, "Of what earlier processes left, what is in no whole record.");
    counter(w, "motet_disk_moved_total", s.moved, "Records kept when their file made way, because they were used.");
    counter(w, "motet_disk_files_dropped_total", s.dropped, "Files that made way for newer ones.");
}

/* Events about the caches that are sent to routers (--kv-events). */
static void write_events(const writer *w, mt_publisher *p)
{
    const mt_publisher_stats s = mt_publisher_look(p);

    counter(w, "motet_kv_event_batches_total", s.numbered, "Batches of KV events that were numbered (--kv-events).");
    counter(w, "motet_kv_event_batches_dropped_total", s.dropped, "Of these, those for which there was no room.");
    counter(w, "motet_kv_event_bytes_total", s.bytes, "Bytes of those that were sent.");
    counter(w, "motet_kv_event_replays_total", s.replays, "Times that somebody asked for what it had missed.");
    gauge(w, "motet_kv_event_waiting_bytes", (double)s.waiting, "Bytes that are yet to be sent.");
    gauge(w, "motet_kv_event_batches_kept", (double)s.kept, "Batches that can be asked for.");
}

/* The processes that compute one model together, as this one, rank 0, sees them. */
static void write_ranks(const writer *w)
{
    const mt_ranks *all = mt_ranks_all();
    mt_ranks_stats s;

    if (!all)
        return;
    mt_ranks_count_up(all, &s);
    gauge(w, "motet_ranks", (double)mt_ranks_count(all), "Processes that compute the model together.");
    counter(w, "motet_rank_sent_bytes_total", s.sent, "Bytes that this one, the first, sent to the others.");
    counter(w, "motet_rank_received_bytes_total", s.received, "Bytes that it had from them.");
    counter(w, "motet_rank_exchanges_total", s.exchanges, "Times that it exchanged something with them.");
    mt_buf_printf(open_metric(w, "motet_rank_wait_seconds_total", "counter", "Time that it waited for them."),
                  "motet_rank_wait_seconds_total{%s} %.9g\n", w->model, (double)s.waited_ns * 1e-9);
}

static void write_sandbox(const writer *w)
{
    static const char name[] = "motet_sandbox";
    const unsigned done = mt_lockdown_done();

    open_metric(w, name, "gauge",
                "What the server and what decodes its pictures have given up, 1 each (docs/security.md).");
    labelled(w, name, "part", "files", (done & MT_CONFINED_FILES) != 0);
    labelled(w, name, "part", "programs", (done & MT_CONFINED_CALLS) != 0);
    labelled(w, name, "part", "capabilities", (done & MT_CONFINED_CAPABILITIES) != 0);
    labelled(w, name, "part", "pictures", mt_decode_process_is_filtered());
    counter(w, "motet_media_processes_total", mt_decode_process_begun(),
            "Processes that decoded pictures, one a request.");
    counter(w, "motet_media_crashes_total", mt_decode_process_crashed(),
            "Of these, those that a picture made crash, or that took more than they may.");
}

static void write_files(const writer *w, mt_files *files)
{
    const mt_files_stats s = files ? mt_files_look(files) : (mt_files_stats){0};

    if (!files)
        return;
    gauge(w, "motet_files", (double)s.count, "Files that clients keep here, those that are being uploaded included.");
    gauge(w, "motet_files_bytes", (double)s.bytes, "Their bytes.");
    gauge(w, "motet_files_limit_bytes", (double)s.limit, "How many they may have (--files-bytes).");
    counter(w, "motet_files_uploaded_total", s.taken, "Files that were uploaded.");
    counter(w, "motet_files_deleted_total", s.removed, "Files that clients have deleted.");
    counter(w, "motet_files_expired_total", s.expired, "Files whose time was over.");
    counter(w, "motet_files_refused_total", s.refused, "Uploads for which there was no room.");
}

static void write_documents(const writer *w, mt_rendered *rendered)
{
    const mt_rendered_stats s = mt_rendered_look(rendered);

    gauge(w, "motet_pdfs_kept_bytes", (double)s.bytes, "Bytes of what is kept of PDFs that were read.");
    counter(w, "motet_pdfs_read_total", s.read, "PDFs that were read, or shown as pictures.");
    counter(w, "motet_pdfs_reused_total", s.reused, "PDFs that were read before, and not again.");
    counter(w, "motet_pdf_pages_total", s.pages, "Pages of PDFs that were read.");
}

static void write_batches(const writer *w, mt_batches *batches)
{
    static const char *const results[MT_BULK_RESULTS] = {"answered", "errors", "expired", "cancelled"};
    const mt_batches_stats s = batches ? mt_batches_look(batches) : (mt_batches_stats){0};

    if (!batches)
        return;
    open_metric(w, "motet_batches", "gauge", "Batches that are kept here, by what they do.");
    for (size_t i = 0; i < MT_BULK_STATES; i++)
        labelled(w, "motet_batches", "state", mt_bulk_state_name((mt_bulk_state)i), s.states[i]);
    gauge(w, "motet_batch_lines_running", (double)s.running, "Lines of batches that are being answered.");
    open_metric(w, "motet_batch_lines_total", "counter", "Lines of batches that have their results.");
    for (size_t i = 0; i < MT_BULK_RESULTS; i++)
        labelled(w, "motet_batch_lines_total", "result", results[i], s.lines[i]);
    counter(w, "motet_batch_lines_again_total", s.again, "Lines that are answered again, since the server was busy.");
}

static void write_http(const writer *w, mt_server *server)
{
    static const char name[] = "motet_http_responses_total", late[] = "motet_calls_timed_out_total";
    static const char again[] = "motet_reloads_total";
    static const char *const classes[] = {"", "1xx", "2xx", "3xx", "4xx", "5xx"};
    static const char *const phases[MT_TIMEOUT_PHASES] = {"preparing", "waiting", "running"};
    mt_http_stats s;
    const mt_store_stats store = mt_store_look(server->store);

    mt_http_server_stats(server->http, &s);
    gauge(w, "motet_http_connections", (double)s.connections_open, "Connections open.");
    gauge(w, "motet_http_exchanges", (double)s.exchanges_open, "Requests that are being answered.");
    counter(w, "motet_http_connections_total", s.connections_accepted, "Connections accepted.");
    counter(w, "motet_http_connections_refused_total", s.connections_refused,
            "Connections for which there was no room.");
    counter(w, "motet_http_connections_yielded_total", s.connections_yielded,
            "Connections without a request that were closed to make room for others.");
    open_metric(w, name, "counter", "Answers but those to probes of health, by hundreds of their status.");
    for (size_t i = 1; i < MT_COUNT(classes); i++)
        labelled(w, name, "status", classes[i], s.answers[i]);
    counter(w, "motet_http_received_bytes_total", s.bytes_in, "Bytes from clients.");
    counter(w, "motet_http_sent_bytes_total", s.bytes_out, "Bytes to clients.");
    counter(w, "motet_http_slow_total", s.dropped_slow, "Clients dropped because they did not read.");
    counter(w, "motet_http_timed_out_total", s.dropped_timed_out, "Clients dropped because they did not send.");
    counter(w, "motet_http_gone_total", s.gone, "Clients that left before their answer was complete.");
    gauge(w, "motet_store_entries", (double)store.held.entries, "Responses that are kept.");
    gauge(w, "motet_store_bytes", (double)store.held.bytes, "Bytes of them, with what was asked.");
    gauge(w, "motet_store_waiting", (double)store.waiting, "Responses that are yet to be written.");
    counter(w, "motet_store_failed_total", store.failed, "Responses that could not be kept.");
    gauge(w, "motet_requests_bytes", (double)atomic_load(&server->room.used),
          "Bodies that are read or prepared, and what requests that wait or run are made of.");
    gauge(w, "motet_calls", (double)server->call_count, "Calls between their arrival and their end.");
    counter(w, "motet_calls_total", server->calls_total, "Calls that were prepared.");
    counter(w, "motet_memory_refused_total", mt_alloc_refused_all(), "Times that the system refused memory.");
    counter(w, "motet_calls_refused_total", server->refused_total,
            "Calls refused because too many wait, or the model is not loaded.");
    counter(w, "motet_calls_background_total", server->detached_total,
            "Calls that went on although no client waited for their answer.");
    counter(w, "motet_calls_forsaken_total", server->forsaken_total,
            "Background answers that were ended because nobody followed them (--background-alone).");
    counter(w, "motet_calls_abandoned_total", server->cancelled_total, "Calls whose client left.");
    open_metric(w, again, "counter",
                "How often SIGHUP had keys and the certificate read again, by whether that worked.");
    labelled(w, again, "result", "failed", server->reloads[0]);
    labelled(w, again, "result", "ok", server->reloads[1]);
    const mt_uploads_stats uploads = mt_uploads_look(&((mt_server *)(uintptr_t)server)->uploaded);
    gauge(w, "motet_uploads", (double)uploads.count, "Uploaded pictures and videos that are kept.");
    gauge(w, "motet_upload_bytes", (double)uploads.bytes, "Their bytes (--upload-bytes).");
    counter(w, "motet_uploads_total", uploads.taken, "Pictures and videos that were uploaded.");
    counter(w, "motet_uploads_evicted_total", uploads.evicted, "Those that made way for others.");
    counter(w, "motet_uploads_missed_total", uploads.missed, "Times that one was referred to that was not there.");
    write_files(w, server->files);
    write_batches(w, server->batches);
    write_documents(w, &server->rendered);
    open_metric(w, late, "counter", "Calls whose time was over (timeout, --request-timeout), by what they were at.");
    for (size_t i = 0; i < MT_TIMEOUT_PHASES; i++)
        labelled(w, late, "phase", phases[i], server->timeouts[i]);
}

/* Counters of accounts: of the one that asks (only), or of all (NULL). */
static void write_accounts(const writer *w, const mt_server *server, const mt_account *only)
{
    static const struct {
        const char *name, *help;
        size_t at; /* offset of the counter in mt_account_use */
    } rows[] = {{"motet_key_requests_total", "Requests with a key, by its name.", offsetof(mt_account_use, requests)},
                {"motet_key_limited_total", "Those that were to come again later.", offsetof(mt_account_use, limited)},
                {"motet_key_prompt_tokens_total", "Prompt tokens.", offsetof(mt_account_use, prompt_tokens)},
                {"motet_key_generation_tokens_total", "Tokens generated.", offsetof(mt_account_use, generated_tokens)},
                {"motet_key_preparing_milliseconds_total",
                 "Processor time of preparing requests: templates, tokens, constraints, decoding.",
                 offsetof(mt_account_use, preparing_ms)}};

    for (size_t r = 0; server->keys.count > 0 && r < MT_COUNT(rows); r++) {
        open_metric(w, rows[r].name, "counter", rows[r].help);
        for (size_t i = 0; i < server->keys.account_count; i++) {
            mt_account *a = server->keys.accounts[i];
            const mt_account_use use = mt_account_look(a);
            uint64_t value;

            memcpy(&value, (const char *)&use + rows[r].at, sizeof(value));
            if (!only || a == only)
                labelled(w, rows[r].name, "key", a->name, value);
        }
    }
}

/* Counters of a member's encoders, each under the encoder's own name. */
static void write_encoders(sheet *to, const mt_member *m, const mt_member_past *all)
{
    mt_buf label = {.limit = MT_LIMIT_PATH};

    for (size_t i = 0; m->open && i < m->served.target_count; i++) {
        const mt_target *t = &m->served.targets[i];
        const mt_encoder_stats *stats = &all->encoders[i];
        writer w = {.sheet = to};

        if (!t->number)
            continue;
        label.len = 0;
        add_label(&label, t->name);
        w.model = label.data ? label.data : "";
        counter(&w, "motet_encoder_texts_total", stats->texts, "Texts that an encoder computed.");
        counter(&w, "motet_encoder_tokens_total", stats->tokens, "Tokens of these.");
        gauge(&w, "motet_encoder_busy_seconds", stats->seconds, "Time that took.");
        gauge(&w, "motet_encoder_waiting", (double)stats->waiting, "Texts that wait for the encoder.");
    }
    mt_buf_free(&label);
}

/* Where accounts do not share cached prompts, the reason of a cache miss would tell that others have sent the same
   text. */
static void hide_others(mt_stats *s)
{
    s->misses[MT_MISS_FIRST_SIGHT] += s->misses[MT_MISS_SALT] + s->misses[MT_MISS_EVICTED];
    s->misses[MT_MISS_SALT] = s->misses[MT_MISS_EVICTED] = 0;
}

/* A member that is loaded or was. apart: hide what tells of other accounts. */
static void write_model(const writer *w, mt_server *server, mt_member *m, bool apart)
{
    mt_member_past *all = mt_alloc(sizeof(*all));
    size_t used = 0;

    mt_member_count(m, all);
    if (apart)
        hide_others(&all->stats);
    write_encoders(w->sheet, m, all);
    if (!server->fleet.alone)
        write_member(w, m);
    if (!m->facts.encoder) {
        write_requests(w, &all->stats);
        write_tokens(w, &all->stats);
        write_cache(w, &all->stats);
        write_constraints(w, &all->constraints, &all->stats);
        write_sizes(w, &all->stats);
        write_times(w, &all->stats);
        write_memory(w, &all->stats, server->fleet.alone);
    }
    if (m->facts.vision && m->open) {
        pthread_mutex_lock(&m->served.room.lock);
        used = m->served.room.used;
        pthread_mutex_unlock(&m->served.room.lock);
    }
    if (m->facts.vision)
        write_media(w, &all->stats, all, used);
    mt_free(all);
}

static void write_models(sheet *to, mt_server *server, bool apart)
{
    mt_buf label = {.limit = MT_LIMIT_PATH};

    pthread_mutex_lock(&server->fleet.lock);
    for (size_t i = 0; i < server->fleet.count; i++) {
        mt_member *m = server->fleet.members[i];

        if (m->loads == 0)
            continue;
        label.len = 0;
        add_label(&label, m->name);
        write_model(&(writer){.sheet = to, .model = label.data}, server, m, apart);
    }
    pthread_mutex_unlock(&server->fleet.lock);
    mt_buf_free(&label);
}

static void write_sheet(sheet *s, mt_buf *out)
{
    for (size_t i = 0; i < s->count; i++) {
        mt_buf_add(out, s->metrics[i].text.data, s->metrics[i].text.len);
        mt_buf_free(&s->metrics[i].text);
    }
    mt_free(s);
}

bool mt_metrics_tell(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    const mt_account *account = request->who;
    sheet *all = mt_alloc(sizeof(*all));
    writer w = {.sheet = all, .model = ""};
    mt_buf label = {.limit = MT_LIMIT_PATH};

    (void)why;
    write_models(all, server, server->isolate && mt_account_scope(account));
    if (server->fleet.alone) {
        add_label(&label, server->fleet.members[0]->name);
        w.model = label.data;
    } else
        write_fleet(&w, &server->fleet);
    write_http(&w, server);
    write_disk(&w, server->fleet.disk.disk);
    if (server->fleet.publisher)
        write_events(&w, server->fleet.publisher);
    write_ranks(&w);
    write_remote(&w, server->fleet.disk.remote);
    write_sandbox(&w);
    write_accounts(&w, server, mt_account_scope(account));
    write_sheet(all, out);
    mt_buf_free(&label);
    return true;
}
