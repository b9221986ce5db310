/* The command motet bench --url and --compare: measures how a server counts tokens, then puts one load after the other
   on it. Two servers get the same requests in turns, so that changes of the machine over time affect both. */
#include "cli/bench_server.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/random.h"
#include "base/log.h"
#include "sample/limits.h"

/* words of the two prompts that show how a server counts tokens; fewest requests of a load */
enum { FEW = 16, MANY = 144, LEAST_REQUESTS = 8 };

/* ---- how a server counts ---- */

/* Ignores the text of an answer, see mt_chat_answer. */
static void ignore(mt_chat_answer *answer, bool reasoning, const char *text)
{
    (void)answer, (void)reasoning, (void)text;
}

/* Asks the server how many tokens a prompt of `words` words has. *tokens is -1 where the server does not say. */
static bool count_words(const mt_chat_server *server, uint64_t seed, size_t words, long *tokens, mt_error *err)
{
    mt_chat_answer answer = {.piece = ignore};
    mt_dice dice = {seed + words};
    mt_buf text;
    mt_buf_init(&text, 1 << 20);
    mt_workload_words(&text, &dice, words);
    json_t *messages = json_pack("[{s:s, s:s}]", "role", "user", "content", text.data);
    mt_chat_call *call = mt_chat_call_new(server, messages, &answer, err);
    bool ok = call != NULL;
    if (call) {
        curl_easy_setopt(mt_chat_call_handle(call), CURLOPT_TIMEOUT, 120L);
        ok = mt_chat_call_end(call, curl_easy_perform(mt_chat_call_handle(call)), err);
    }
    if (ok && answer.interrupted)
        ok = mt_fail(err, MT_E_IO, "interrupted");
    *tokens = answer.prompt;
    mt_chat_answer_free(&answer);
    json_decref(messages);
    mt_buf_free(&text);
    return ok;
}

/* Sets what all further requests to the server ask for. */
static void ask_for(mt_server_bench *b, mt_chat_server *s, size_t tokens, bool ignore_eos)
{
    const mt_options *o = b->opt;
    json_decref(s->settings);
    s->settings = json_pack("{s:I, s:f}", "max_tokens", (json_int_t)tokens, "temperature",
                            isnan(o->bench_temperature) ? 0.0 : o->bench_temperature);
    if (!isnan(o->bench_top_p))
        json_object_set_new(s->settings, "top_p", json_real(o->bench_top_p));
    if (ignore_eos)
        json_object_set_new(s->settings, "ignore_eos", json_true());
}

/* Computes from two prompts how many tokens a word has, and how many a message has besides its words. False: the server
   does not answer. */
static bool learn(mt_server_bench *b, size_t i, mt_error *err)
{
    mt_chat_server *s = &b->server[i];
    mt_workload *w = &b->work[i];
    long few, many;
    bool ends = true; /* whether the server accepts ignore_eos */
    mt_log_passing("bench.server", "asking %s how it counts", s->url);
    ask_for(b, s, 1, ends);
    if (!count_words(s, w->seed, FEW, &few, err)) {
        ends = false; /* ignore_eos is not part of OpenAI's API: some servers refuse it */
        ask_for(b, s, 1, ends);
        if (!count_words(s, w->seed, FEW, &few, err))
            return false;
    }
    if (!count_words(s, w->seed, MANY, &many, err))
        return false;
    w->per_word = many > few && few > 0 ? (double)(many - few) / (MANY - FEW) : 1;
    w->beside = many > few && few > 0 ? fmax(0, (double)few - FEW * w->per_word) : 0;
    if (many <= 0)
        mt_report_say(b->report, "%s does not say how many tokens a prompt has: words count as tokens", s->url);
    if (!ends)
        mt_report_say(b->report, "%s does not know ignore_eos: answers may be shorter than --tokens", s->url);
    ask_for(b, s, w->tokens, ends);
    return true;
}

/* ---- loads ---- */

/* One number over the records from index `from` on, the gaps between pieces from index `gaps` on, and the duration
   `seconds`. */
static double cell_metric(const mt_load_result *r, size_t from, size_t gaps, double seconds, mt_metric metric)
{
    mt_series s = {0};
    double tokens = 0;
    for (size_t i = from; i < r->count; i++) {
        const mt_load_record *x = &r->record[i];
        if (x->error[0])
            continue;
        tokens += mt_load_tokens(x);
        if (metric == MT_METRIC_FIRST)
            mt_series_add(&s, 1e3 * (x->first - x->start));
        if (metric == MT_METRIC_WHOLE)
            mt_series_add(&s, x->end - x->start);
    }
    for (size_t i = gaps; metric == MT_METRIC_BETWEEN && i < r->between.count; i++)
        mt_series_add(&s, 1e3 * r->between.at[i]);
    const double value = metric == MT_METRIC_RATE ? tokens / seconds : mt_series_quantile(&s, 0.5);
    mt_series_free(&s);
    return value;
}

static size_t requests_of(const mt_server_bench *b, double load)
{
    const size_t turns = b->work[0].turns;
    size_t count = b->open ? LEAST_REQUESTS : (size_t)(2 * load);
    count = count > LEAST_REQUESTS ? count : LEAST_REQUESTS;
    if (b->opt->bench_requests)
        count = (size_t)b->opt->bench_requests;
    return (count + turns - 1) / turns * turns;
}

static bool put_load(mt_server_bench *b, size_t server, size_t number, size_t round, mt_error *err)
{
    const double load = b->loads.at[number];
    mt_cell *cell = &b->cell[server][number];
    const size_t known = cell->result.count, gaps = cell->result.between.count;
    const double seconds = cell->result.seconds;
    char label[160];
    const char *who = b->servers > 1 ? b->server[server].url : "the server";
    if (b->open)
        snprintf(label, sizeof(label), "%.100s, %g requests/s", who, load);
    else
        snprintf(label, sizeof(label), "%.100s, %.0f client%s", who, load, load > 1 ? "s" : "");
    /* The number of the first conversation depends on the load and the round only, so that both servers get the same
       prompts and no prompt comes twice. */
    const mt_load l = {.server = &b->server[server],
                       .work = &b->work[server],
                       .clients = b->open ? 0 : (size_t)load,
                       .rate = load,
                       .requests = requests_of(b, load),
                       .number = (uint64_t)(round * MT_BENCH_LIST + number) << 24,
                       .timeout = (double)b->opt->bench_timeout,
                       .label = label};
    if (!mt_load_run(&l, &cell->result, err))
        return false;
    for (mt_metric m = 0; m < MT_METRICS; m++)
        mt_series_add(&cell->round[m], cell_metric(&cell->result, known, gaps, cell->result.seconds - seconds, m));
    return !cell->result.interrupted || mt_fail(err, MT_E_IO, "interrupted");
}

/* Runs all loads of all rounds. The server that begins changes from round to round. */
static bool put_loads(mt_server_bench *b, mt_error *err)
{
    const size_t rounds = b->servers > 1 ? (size_t)b->opt->bench_rounds : 1;
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < b->loads.count; i++)
            for (size_t k = 0; k < b->servers; k++)
                if (!put_load(b, (k + round) % b->servers, i, round, err))
                    return false;
    return true;
}

/* ---- the whole ---- */

static bool read_options(mt_server_bench *b, mt_error *err)
{
    const mt_options *o = b->opt;
    mt_bench_list prompts, sides = {0};
    b->open = o->bench_rate != NULL;
    if (!mt_bench_list_read(&prompts, "prompt", o->bench_prompt, "128", 1, MT_LIMIT_CONTEXT, err) ||
        (o->bench_picture && !mt_bench_list_read(&sides, "picture", o->bench_picture, "", 1, 8192, err)))
        return false;
    if (prompts.count > 1 || sides.count > 1)
        return mt_fail(err, MT_E_INVALID, "a server is measured with one --prompt and one --picture; give one number");
    if (o->bench_rate && o->bench_clients)
        return mt_fail(err, MT_E_INVALID, "\"--rate\" and \"--clients\" exclude each other; give one of them");
    if (o->bench_tokens < 1)
        return mt_fail(err, MT_E_INVALID, "\"--tokens\" has to be 1 or more for a server");
    uint64_t seed = (uint64_t)o->bench_seed;
    if (!seed)
        mt_random(&seed, sizeof(seed));
    seed &= INT64_MAX;
    json_object_set_new(b->report->facts, "seed", json_integer((json_int_t)seed));
    for (size_t i = 0; i < MT_BENCH_SERVERS; i++)
        b->work[i] = (mt_workload){.seed = seed,
                                   .prompt = prompts.at[0],
                                   .prefix = (double)o->bench_prefix,
                                   .tokens = (size_t)o->bench_tokens,
                                   .side = (size_t)sides.at[0],
                                   .turns = o->bench_agents ? (size_t)o->bench_agents : 1};
    return b->open ? mt_bench_list_read(&b->loads, "rate", o->bench_rate, "", 0.001, 100000, err)
                   : mt_bench_list_read(&b->loads, "clients", o->bench_clients, "1,2,4,8", 1, 1024, err);
}

static bool reach(mt_server_bench *b, const char *url, mt_error *err)
{
    mt_chat_server *s = &b->server[b->servers++];
    s->key = b->opt->api_keys.count ? b->opt->api_keys.at[0] : NULL;
    if (!mt_chat_server_reach(s, url, err))
        return false;
    if (b->opt->bench_model)
        snprintf(s->model, sizeof(s->model), "%s", b->opt->bench_model);
    return learn(b, b->servers - 1, err);
}

static void introduce(mt_server_bench *b)
{
    const mt_workload *w = &b->work[0];
    char work[384], picture[96] = "", talk[96] = "", prefix[96] = "";
    if (w->side)
        snprintf(picture, sizeof(picture), ", a picture of %zu x %zu pixels", w->side, w->side);
    if (w->turns > 1)
        snprintf(talk, sizeof(talk), ", %zu turns of a conversation", w->turns);
    if (w->prefix > 0)
        snprintf(prefix, sizeof(prefix), " behind %.0f that all share", w->prefix);
    snprintf(work, sizeof(work), "prompts of about %.0f tokens%s%s, answers of %zu%s", w->prompt, prefix, picture,
             w->tokens, talk);
    snprintf(b->report->title, sizeof(b->report->title), "motet bench: %.100s%s%.100s", b->server[0].url,
             b->servers > 1 ? " and " : "", b->servers > 1 ? b->server[1].url : "");
    json_object_set_new(b->report->facts, "requests", json_string(work));
    for (size_t i = 0; i < b->servers; i++) {
        char key[16], text[1024];
        snprintf(key, sizeof(key), b->servers > 1 ? "server %zu" : "server", i + 1);
        snprintf(text, sizeof(text), "%s, model %s", b->server[i].url, b->server[i].model);
        json_object_set_new(b->report->facts, key, json_string(text));
        mt_report_say(b->report, "%-9s %s", key, text);
    }
    mt_report_say(b->report, "requests  %s", work);
}

static bool any_answer(const mt_server_bench *b, mt_error *err)
{
    for (size_t k = 0; k < b->servers; k++) {
        const char *why = "nothing was sent";
        size_t good = 0;
        for (size_t i = 0; i < b->loads.count; i++)
            for (size_t j = 0; j < b->cell[k][i].result.count; j++) {
                const mt_load_record *r = &b->cell[k][i].result.record[j];
                good += !r->error[0];
                why = r->error[0] ? r->error : why;
            }
        if (!good)
            return mt_fail(err, MT_E_IO, "%s answered no request: %s", b->server[k].url, why);
    }
    return true;
}

static bool measure(mt_server_bench *b, mt_error *err)
{
    const mt_options *o = b->opt;
    if (!read_options(b, err))
        return false;
    if (o->bench_compare ? !reach(b, o->dir, err) || !reach(b, o->input, err)
                         : !reach(b, o->bench_url ? o->bench_url : o->dir, err))
        return false;
    introduce(b);
    if (!put_loads(b, err))
        return false;
    mt_bench_load_tables(b);
    if (b->servers > 1)
        mt_bench_ratio_table(b);
    return any_answer(b, err) && mt_bench_csv(b, err);
}

bool mt_bench_server(const mt_options *opt, mt_report *report, mt_error *err)
{
    static mt_server_bench b; /* too large for the stack */
    memset(&b, 0, sizeof(b));
    b.opt = opt;
    b.report = report;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    mt_chat_interruptible(true);
    const bool ok = measure(&b, err);
    mt_chat_interruptible(false);
    for (size_t k = 0; k < MT_BENCH_SERVERS; k++) {
        json_decref(b.server[k].settings);
        for (size_t i = 0; i < MT_BENCH_LIST; i++) {
            mt_load_result_free(&b.cell[k][i].result);
            for (mt_metric m = 0; m < MT_METRICS; m++)
                mt_series_free(&b.cell[k][i].round[m]);
        }
    }
    return ok;
}
