/* Many requests at once, on one thread: handles of libcurl that are driven together. A flight is a request from its
   start to its record. Clients that wait for their answers are as many flights; those that do not come at random, at
   most MOST_FLIGHTS at a time. */
#include "cli/bench_load.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

enum { MOST_FLIGHTS = 1024, LOOK_MS = 100, TELL_NS = 250000000 };

typedef struct flight {
    mt_chat_answer answer; /* first: its piece leads here */
    struct run *run;
    mt_chat_call *call; /* NULL: it is on the ground */
    json_t *messages;   /* of the conversation, between its turns too */
    uint64_t number;
    mt_load_record record;
} flight;

typedef struct run {
    const mt_load *load;
    mt_load_result *result;
    CURLM *multi;
    flight *flights;
    size_t places, up, landed;
    size_t begun; /* conversations, or requests where each is one */
    uint64_t start, told;
    double next; /* when the next one arrives, where they come at a rate */
    mt_dice dice;
    size_t tokens;
} run;

static double now(const run *r)
{
    return (double)(mt_clock_ns() - r->start) * 1e-9;
}

double mt_load_tokens(const mt_load_record *r)
{
    return r->tokens > 0 ? (double)r->tokens : (double)r->pieces;
}

static void piece(mt_chat_answer *answer, bool reasoning, const char *text)
{
    flight *f = (flight *)answer;
    const double at = now(f->run);
    (void)reasoning, (void)text;
    if (f->record.pieces++ == 0)
        f->record.first = at;
    else
        mt_series_add(&f->run->result->between, at - f->record.last);
    f->record.last = at;
    f->run->tokens++;
}

static bool take_off(run *r, flight *f, mt_error *err)
{
    const size_t turn = f->record.turn;
    f->answer = (mt_chat_answer){.piece = piece};
    f->record = (mt_load_record){.client = (size_t)(f - r->flights), .turn = turn, .first = NAN, .start = now(r)};
    f->call = mt_chat_call_new(r->load->server, f->messages, &f->answer, err);
    if (!f->call)
        return false;
    CURL *handle = mt_chat_call_handle(f->call);
    curl_easy_setopt(handle, CURLOPT_PRIVATE, f);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)(1e3 * r->load->timeout));
    curl_multi_add_handle(r->multi, handle);
    r->up++;
    return true;
}

static bool begin(run *r, flight *f, mt_error *err)
{
    f->run = r;
    f->number = r->load->number + r->begun++;
    f->record.turn = 0;
    f->messages = mt_workload_begin(r->load->work, f->number);
    return take_off(r, f, err);
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

/* What is wrong with an answer that the transfer had no fault with. */
static const char *fault_of(const flight *f)
{
    if (f->record.pieces == 0)
        return f->answer.finish[0] ? "the answer is empty" : "no stream of events came";
    return f->answer.finish[0] ? NULL : "the stream was cut: it ended without a finish_reason";
}

/* The flight is over; with turns left, its conversation goes on. */
static bool land(run *r, flight *f, CURLcode code, mt_error *err)
{
    mt_load_record *record = &f->record;
    mt_error own = {0};
    record->end = now(r);
    curl_multi_remove_handle(r->multi, mt_chat_call_handle(f->call));
    const bool ok = mt_chat_call_end(f->call, code, &own);
    f->call = NULL;
    r->up--;
    r->landed++;
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
        return take_off(r, f, err);
    json_decref(f->messages);
    f->messages = NULL;
    return true;
}

/* Conversations count by their turns. */
static size_t conversations(const mt_load *load)
{
    const size_t turns = load->work->turns;
    return (load->requests + turns - 1) / turns;
}

static bool begin_due(run *r, mt_error *err)
{
    const mt_load *load = r->load;
    for (size_t i = 0; i < r->places && r->begun < conversations(load); i++) {
        if (!load->clients && r->next > now(r))
            break;
        if (r->flights[i].messages)
            continue;
        if (!begin(r, &r->flights[i], err))
            return false;
        r->next += load->clients ? 0 : mt_dice_gap(&r->dice, load->rate);
    }
    return true;
}

static bool land_done(run *r, mt_error *err)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(r->multi, &left))) {
        flight *f = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        const CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&f);
        if (!land(r, f, code, err))
            return false;
    }
    return true;
}

static void tell(run *r)
{
    const uint64_t at = mt_clock_ns();
    if (at - r->told < TELL_NS)
        return;
    r->told = at;
    mt_log_passing("bench.load", "%s: %zu of %zu done, %zu under way, %.0f tokens/s", r->load->label, r->result->count,
                   conversations(r->load) * r->load->work->turns, r->up, (double)r->tokens / now(r));
}

static bool drive(run *r, mt_error *err)
{
    while ((r->up > 0 || r->begun < conversations(r->load)) && !mt_chat_interrupted()) {
        int running;
        const size_t landed = r->landed;
        if (!begin_due(r, err) || curl_multi_perform(r->multi, &running) != CURLM_OK || !land_done(r, err))
            return false;
        tell(r);
        if (r->landed > landed)
            continue; /* whoever has its answer asks again at once */
        double wait = LOOK_MS;
        if (!r->load->clients && r->up < r->places && r->begun < conversations(r->load))
            wait = fmin(wait, fmax(0, 1e3 * (r->next - now(r))));
        if (r->up > 0 || wait > 0)
            curl_multi_poll(r->multi, NULL, 0, (int)ceil(wait), NULL);
    }
    return true;
}

static void ground(run *r)
{
    for (size_t i = 0; i < r->places; i++) {
        flight *f = &r->flights[i];
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
    r.places = load->clients ? load->clients : MOST_FLIGHTS;
    r.flights = mt_alloc_array(r.places, sizeof(*r.flights));
    r.dice.state = load->work->seed + load->number;
    const size_t known = result->count;
    const bool ok = drive(&r, err);
    double end = 0;
    for (size_t i = known; i < result->count; i++)
        end = fmax(end, result->record[i].end);
    result->seconds += end;
    result->interrupted = mt_chat_interrupted();
    ground(&r);
    curl_multi_cleanup(r.multi);
    mt_free(r.flights);
    return ok;
}

void mt_load_result_free(mt_load_result *result)
{
    mt_free(result->record);
    mt_series_free(&result->between);
    *result = (mt_load_result){0};
}
