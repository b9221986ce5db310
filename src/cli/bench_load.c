/* See bench_load.h. One thread drives all requests as transfers of one curl_multi handle. A slot is the place of one
   conversation and of its request under way: there is a slot for each client, or MOST_SLOTS slots where requests start
   at a rate. */
#include "cli/bench_load.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

/* POLL_MS bounds the wait for the network, so that Ctrl-C is noticed; TELL_NS is the time between two lines about the
   progress. */
enum { MOST_SLOTS = 1024, POLL_MS = 100, TELL_NS = 250000000 };

typedef struct slot {
    mt_chat_answer answer; /* must be the first member: piece() casts its pointer to the slot */
    struct run *run;
    mt_chat_call *call; /* the request under way; NULL: none */
    json_t *messages;   /* of the conversation so far; NULL: the slot is free; owned */
    uint64_t number;    /* of the conversation, see mt_workload_begin */
    mt_load_record record;
} slot;

typedef struct run {
    const mt_load *load;
    mt_load_result *result;
    CURLM *multi;
    slot *slots;
    /* slots; requests under way; requests that have ended */
    size_t count, under_way, ended;
    size_t begun; /* conversations that have begun */
    /* Nanoseconds on the monotonic clock: the start of the load, and of the last line about the progress */
    uint64_t start, told;
    /* Seconds after the start at which the next request is due; only where requests start at a rate */
    double next;
    mt_dice dice;
    size_t tokens; /* pieces of all answers so far */
} run;

/* Seconds since the start of the load. */
static double now(const run *r)
{
    return (double)(mt_clock_ns() - r->start) * 1e-9;
}

double mt_load_tokens(const mt_load_record *r)
{
    return r->tokens > 0 ? (double)r->tokens : (double)r->pieces;
}

/* Receives the text of an answer, see mt_chat_answer. */
static void piece(mt_chat_answer *answer, bool reasoning, const char *text)
{
    slot *f = (slot *)answer;
    const double at = now(f->run);
    (void)reasoning, (void)text;
    if (f->record.pieces++ == 0)
        f->record.first = at;
    else
        mt_series_add(&f->run->result->between, at - f->record.last);
    f->record.last = at;
    f->run->tokens++;
}

/* Sends the next request of the slot's conversation. */
static bool send_request(run *r, slot *f, mt_error *err)
{
    const size_t turn = f->record.turn;
    f->answer = (mt_chat_answer){.piece = piece};
    f->record = (mt_load_record){.client = (size_t)(f - r->slots), .turn = turn, .first = NAN, .start = now(r)};
    f->call = mt_chat_call_new(r->load->server, f->messages, &f->answer, err);
    if (!f->call)
        return false;
    CURL *handle = mt_chat_call_handle(f->call);
    curl_easy_setopt(handle, CURLOPT_PRIVATE, f);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)(1e3 * r->load->timeout));
    curl_multi_add_handle(r->multi, handle);
    r->under_way++;
    return true;
}

/* Begins the next conversation in a free slot. */
static bool begin(run *r, slot *f, mt_error *err)
{
    f->run = r;
    f->number = r->load->number + r->begun++;
    f->record.turn = 0;
    f->messages = mt_workload_begin(r->load->work, f->number);
    return send_request(r, f, err);
}

static void keep(mt_load_result *result, const mt_load_record *record)
{
    if (result->count == result->capacity) {
        const size_t grown = result->capacity ? 2 * result->capacity : 64;
        result->record = mt_realloc(result->record, result->capacity * sizeof(*record), grown * sizeof(*record));
        result->capacity = grown;
    }
    result->record[result->count++] = *record;
}

/* Why an answer counts as failed although its transfer succeeded; NULL: it does not. */
static const char *fault_of(const slot *f)
{
    if (f->record.pieces == 0)
        return f->answer.finish[0] ? "the answer is empty" : "no stream of events came";
    return f->answer.finish[0] ? NULL : "the stream was cut: it ended without a finish_reason";
}

/* Records a request whose transfer is over, then sends the next request of its conversation or frees the slot. */
static bool end_request(run *r, slot *f, CURLcode code, mt_error *err)
{
    mt_load_record *record = &f->record;
    mt_error own = {0};
    record->end = now(r);
    curl_multi_remove_handle(r->multi, mt_chat_call_handle(f->call));
    const bool ok = mt_chat_call_end(f->call, code, &own);
    f->call = NULL;
    r->under_way--;
    r->ended++;
    record->prompt = f->answer.prompt;
    record->tokens = f->answer.tokens;
    record->cached = f->answer.cached;
    const char *fault = ok                                 ? fault_of(f)
                        : code == CURLE_OPERATION_TIMEDOUT ? "it took longer than --timeout"
                                                           : own.text;
    const bool interrupted = f->answer.interrupted;
    if (fault)
        snprintf(record->error, sizeof(record->error), "%.159s", fault);
    if (!interrupted)
        keep(r->result, record);
    const bool more = !fault && !interrupted && record->turn + 1 < r->load->work->turns;
    if (more)
        mt_workload_go_on(r->load->work, f->messages, f->answer.text.data ? f->answer.text.data : "", f->number,
                          ++record->turn);
    mt_chat_answer_free(&f->answer);
    if (more)
        return send_request(r, f, err);
    json_decref(f->messages);
    f->messages = NULL;
    return true;
}

/* The number of conversations whose turns add up to the requests of the load. */
static size_t conversations(const mt_load *load)
{
    const size_t turns = load->work->turns;
    return (load->requests + turns - 1) / turns;
}

/* Begins conversations in the free slots, as many as are due now. */
static bool begin_due(run *r, mt_error *err)
{
    const mt_load *load = r->load;
    for (size_t i = 0; i < r->count && r->begun < conversations(load); i++) {
        if (!load->clients && r->next > now(r))
            break;
        if (r->slots[i].messages)
            continue;
        if (!begin(r, &r->slots[i], err))
            return false;
        r->next += load->clients ? 0 : mt_dice_gap(&r->dice, load->rate);
    }
    return true;
}

/* Ends all requests whose transfers libcurl reports as over. */
static bool end_requests(run *r, mt_error *err)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(r->multi, &left))) {
        slot *f = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        const CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&f);
        if (!end_request(r, f, code, err))
            return false;
    }
    return true;
}

/* Shows the progress on the terminal, at most every TELL_NS. */
static void tell(run *r)
{
    const uint64_t at = mt_clock_ns();
    if (at - r->told < TELL_NS)
        return;
    r->told = at;
    mt_log_passing("bench.load", "%s: %zu of %zu done, %zu under way, %.0f tokens/s", r->load->label, r->result->count,
                   conversations(r->load) * r->load->work->turns, r->under_way, (double)r->tokens / now(r));
}

/* Runs the load to its end or until Ctrl-C. */
static bool drive(run *r, mt_error *err)
{
    while ((r->under_way > 0 || r->begun < conversations(r->load)) && !mt_chat_interrupted()) {
        int running;
        const size_t ended = r->ended;
        if (!begin_due(r, err) || curl_multi_perform(r->multi, &running) != CURLM_OK || !end_requests(r, err))
            return false;
        tell(r);
        if (r->ended > ended)
            /* slots have become free: begin in them without a wait */
            continue;
        double wait = POLL_MS;
        if (!r->load->clients && r->under_way < r->count && r->begun < conversations(r->load))
            wait = fmin(wait, fmax(0, 1e3 * (r->next - now(r))));
        if (r->under_way > 0 || wait > 0)
            curl_multi_poll(r->multi, NULL, 0, (int)ceil(wait), NULL);
    }
    return true;
}

/* Cancels the requests under way, after Ctrl-C or a failure. */
static void cancel_all(run *r)
{
    for (size_t i = 0; i < r->count; i++) {
        slot *f = &r->slots[i];
        mt_error ignored;
        if (f->call) {
            curl_multi_remove_handle(r->multi, mt_chat_call_handle(f->call));
            (void)!mt_chat_call_end(f->call, CURLE_ABORTED_BY_CALLBACK, &ignored);
            mt_chat_answer_free(&f->answer);
        }
        json_decref(f->messages);
    }
}

bool mt_load_run(const mt_load *load, mt_load_result *result, mt_error *err)
{
    run r = {.load = load, .result = result, .multi = curl_multi_init(), .start = mt_clock_ns()};
    r.count = load->clients ? load->clients : MOST_SLOTS;
    r.slots = mt_alloc_array(r.count, sizeof(*r.slots));
    r.dice.state = load->work->seed + load->number;
    const size_t known = result->count;
    const bool ok = drive(&r, err);
    double end = 0;
    for (size_t i = known; i < result->count; i++)
        end = fmax(end, result->record[i].end);
    result->seconds += end;
    result->interrupted = mt_chat_interrupted();
    cancel_all(&r);
    curl_multi_cleanup(r.multi);
    mt_free(r.slots);
    return ok;
}

void mt_load_result_free(mt_load_result *result)
{
    mt_free(result->record);
    mt_series_free(&result->between);
    *result = (mt_load_result){0};
}
