/* Prepares a call: from the parsed body to requests for the engine. All that is read, rendered, tokenized and checked
   before the engine hears of a call happens here, on preparation threads. */
#include <math.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/json_body.h"
#include "api/limits.h"
#include "api/random.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_tree.h"
#include "base/patience.h"
#include "chat/document.h"
#include "constraint/limits.h"
#include "server/calls/client.h"
#include "server/inside.h"
#include "server/limits.h"
#include "server/prepare/preparation.h"
#include "server/prepare/thinking.h"

/* Whether the model writes text. */
static bool check_answers(const mt_served *served, mt_failure *why)
{
    return served->opened.checkpoint || mt_fleet_mute(served->name, why);
}

/* The field of the body that has what is answered, for errors. */
static const char *field_of(const mt_ask *ask)
{
    return ask->is_chat ? ask->chat.field : "prompt";
}

/* Sets how many tokens the answer may have: as many as are asked for, at most what the context leaves. */
static bool set_max_tokens(mt_request *r, const mt_served *served, const mt_ask *ask, mt_failure *why)
{
    const size_t left = served->context > r->prompt_len ? served->context - r->prompt_len : 0;

    if (left == 0)
        return mt_tokens_too_long(served, r->prompt_len, false, field_of(ask), why);
    const int64_t wanted = ask->max_tokens >= 0 ? ask->max_tokens : ask->default_max_tokens;
    const bool all = ask->max_tokens < 0 && wanted == 0;
    r->max_tokens = all || (size_t)wanted > left ? left : (size_t)wanted;
    return true;
}

static bool check_prompt(const mt_served *served, const mt_ask *ask, const mt_token_prompt *prompt, mt_failure *why)
{
    if (prompt->count == 0)
        return mt_failure_set(why, 400, "invalid_value", field_of(ask), "the prompt has no tokens: send some text");
    for (size_t i = 0; i < prompt->count; i++)
        if (prompt->ids[i] >= served->vocab)
            return mt_failure_set(why, 400, "invalid_value", field_of(ask),
                                  "the prompt has token %u, which is out of vocabulary: the model's last is %zu",
                                  prompt->ids[i], served->vocab - 1);
    return true;
}

/* Restricts the answer to the tokens of allowed_token_ids, as a bit mask over the vocabulary. */
static bool set_allowed_ids(mt_request *r, const mt_served *served, const mt_ask *ask, mt_failure *why)
{
    uint32_t *mask;

    if (!ask->allowed_ids)
        return true;
    mask = mt_arena_alloc(r->arena, (served->vocab + 31) / 32 * sizeof(*mask));
    if (!mask)
        return mt_failure_memory(why, NULL);
    for (size_t i = 0; i < ask->allowed_id_count; i++) {
        const uint32_t id = ask->allowed_ids[i];

        if (id >= served->vocab)
            return mt_failure_value(why, "allowed_token_ids", "names token %u: send ids from 0 to %zu", id,
                                    served->vocab - 1);
        mask[id / 32] |= UINT32_C(1) << id % 32;
    }
    r->sampling.only = mask;
    return true;
}

/* Forbids a word in both its forms, alone and after a space, where they have different tokens. */
static bool add_bad(mt_request *r, mt_call *call, mt_chat_text word, mt_bad_word *bad, mt_failure *why)
{
    mt_sample_settings *s = &r->sampling;
    char *spaced = mt_arena_alloc(r->arena, word.len + 1);
    mt_token_prompt ids, alone = {0};

    if (!spaced)
        return mt_failure_memory(why, NULL);
    spaced[0] = ' ';
    memcpy(spaced + 1, word.data, word.len);
    for (size_t i = 0; i < 2; i++) {
        const mt_chat_text text = {.data = spaced + 1 - i, .len = word.len + i};

        if (!mt_tokens_encode(call->served, r->arena, text, false, &call->stop, 0, &ids, why))
            return false;
        if (ids.count > 0 &&
            (i == 0 || ids.count != alone.count || memcmp(ids.ids, alone.ids, ids.count * sizeof(*ids.ids)) != 0))
            bad[s->bad_count++] = (mt_bad_word){.ids = ids.ids, .count = ids.count};
        alone = ids;
    }
    return true;
}

static bool set_bad(mt_request *r, mt_call *call, const mt_ask *ask, mt_failure *why)
{
    const size_t count = json_array_size(ask->bad_words);
    mt_bad_word *bad = mt_arena_alloc(r->arena, 2 * count * sizeof(*bad) + 1);

    if (!bad)
        return mt_failure_memory(why, NULL);
    r->sampling.bad = bad;
    for (size_t i = 0; i < count; i++) {
        const json_t *word = json_array_get(ask->bad_words, i);
        const char *text = json_string_value(word);
        const size_t spaces = strspn(text, " ");

        if (!add_bad(r, call, (mt_chat_text){.data = text + spaces, .len = json_string_length(word) - spaces}, bad,
                     why))
            return false;
    }
    return true;
}

/* Copies stop_token_ids. Those that the model does not have never end an answer: programs that were written for one
   model send its ids to others. */
static const uint32_t *copy_stop_ids(mt_request *r, mt_call *call, const mt_ask *ask, size_t *count)
{
    uint32_t *ids = mt_arena_alloc(r->arena, (ask->sampling.stop_count + 1) * sizeof(*ids));

    *count = 0;
    for (size_t i = 0; ids && i < ask->sampling.stop_count; i++)
        if (ask->sampling.stop_ids[i] < call->served->vocab)
            ids[(*count)++] = ask->sampling.stop_ids[i];
        else if (!call->warning || !strstr(call->warning, "stop_token_ids")) /* once */
            mt_call_warn(call, "stop_token_ids: token %u is out of vocabulary", ask->sampling.stop_ids[i]);
    return ids;
}

static bool set_sampling(mt_request *r, mt_call *call, const mt_ask *ask, mt_failure *why)
{
    const mt_served *served = call->served;
    mt_sample_settings *s = &r->sampling;
    mt_error err;

    *s = ask->sampling;
    if (!ask->seeded)
        mt_random(&s->seed, sizeof(s->seed));
    s->bias = mt_arena_copy(r->arena, ask->sampling.bias, ask->sampling.bias_count * sizeof(*ask->sampling.bias));
    s->stop_ids = copy_stop_ids(r, call, ask, &s->stop_count);
    s->logprob_ids = mt_arena_copy(r->arena, ask->sampling.logprob_ids,
                                   ask->sampling.logprob_count * sizeof(*ask->sampling.logprob_ids));
    s->eos_ids = served->generation.eos;
    s->eos_count = served->generation.eos_count;
    if (!s->bias || !s->stop_ids || !s->logprob_ids)
        return mt_failure_memory(why, NULL);
    return set_allowed_ids(r, served, ask, why) && set_bad(r, call, ask, why) &&
           (mt_sample_settings_check(s, served->vocab, &err) ||
            mt_failure_set(why, 400, "invalid_value", err.field, "%s", err.text));
}

static void free_stop(void *stop)
{
    mt_stop_free(stop);
}

static bool copy_stops(mt_request *r, const mt_ask *ask, mt_failure *why)
{
    mt_stop_string *strings = mt_arena_alloc(r->arena, ask->stop_count * sizeof(*strings));

    for (size_t i = 0; strings && i < ask->stop_count; i++) {
        strings[i] = (mt_stop_string){.str = mt_arena_copy(r->arena, ask->stops[i].str, ask->stops[i].len),
                                      .len = ask->stops[i].len};
        if (!strings[i].str)
            return mt_failure_memory(why, NULL);
    }
    r->stop_strings = strings;
    return strings || mt_failure_memory(why, NULL);
}

static bool set_stop(mt_request *r, const mt_ask *ask, mt_failure *why)
{
    mt_error err;
    mt_stop *stop;

    if (ask->stop_count == 0)
        return true;
    stop = mt_stop_new(ask->stops, ask->stop_count, &err);
    if (!stop)
        return mt_failure_from(why, &err, "stop");
    if (!mt_arena_defer(r->arena, free_stop, stop)) {
        mt_stop_free(stop);
        return mt_failure_memory(why, NULL);
    }
    r->stop = stop;
    return copy_stops(r, ask, why);
}

/* Tokens of the answer that the client predicts ("prediction"), which the engine may use as guesses. */
static bool set_expected(mt_request *r, mt_call *call, const mt_ask *ask, mt_failure *why)
{
    mt_token_prompt expected;

    if (!ask->prediction.data)
        return true;
    if (!mt_tokens_encode(call->served, r->arena, ask->prediction, false, &call->stop, 0, &expected, why))
        return false;
    r->expected = expected.ids;
    r->expected_count = expected.count;
    return true;
}

/* The formats in which the model writes reasoning and tool calls: as the operator says, else as its chat template
   shows. Where a template that the request brought shows none, the model's own template counts. */
static mt_parse_formats formats_of(const mt_served *served, const mt_ask *ask, const mt_token_prompt *prompt)
{
    const bool tools = ask->chat.tools != NULL;
    mt_parse_formats f = mt_chat_templates_pick(prompt->templates, tools)->formats;

    if (served->templates && prompt->templates != served->templates) {
        const mt_parse_formats *own = &mt_chat_templates_pick(served->templates, tools)->formats;

        f.tools = strcmp(f.tools, "none") == 0 ? own->tools : f.tools;
        f.reasoning = strcmp(f.reasoning, "none") == 0 ? own->reasoning : f.reasoning;
    }
    if (served->formats.tools)
        f.tools = served->formats.tools;
    if (served->formats.reasoning)
        f.reasoning = served->formats.reasoning;
    return f;
}

static mt_parse_settings parsing_of(const mt_served *served, const mt_ask *ask, const mt_token_prompt *prompt)
{
    return (mt_parse_settings){.formats = formats_of(served, ask, prompt),
                               .tools = ask->calls == MT_SHAPE_CALLS_NONE ? NULL : ask->chat.tools,
                               .opened = prompt->opened};
}

static void release_constraint(void *constraint)
{
    mt_constraint_release(constraint);
}

/* The compiled constraint of a shape. NULL: *err, or the call's lane has changed. The small lane only looks constraints
   up; the lane MT_LANE_COMPILE compiles for a short time; what takes longer is compiled in the large lane. */
static mt_constraint *find_constraint(mt_call *call, const mt_shape *shape, mt_error *err)
{
    mt_constraints *all = call->served->constraints;
    const mt_account *apart = mt_client_apart(call);
    const uint8_t *owner = apart ? apart->owner : NULL;
    const bool hurry = call->lane == MT_LANE_COMPILE;
    const mt_patience patience = {.stop = &call->stop,
                                  .until = hurry ? mt_clock_ns() + MT_LIMIT_COMPILING_MS * UINT64_C(1000000) : 0,
                                  .work_until = mt_clock_thread_ns() + MT_LIMIT_CONSTRAINT_MS * UINT64_C(1000000)};
    mt_constraint *found = call->lane == MT_LANE_SMALL ? mt_constraints_find(all, owner, shape)
                                                       : mt_constraints_get(all, owner, shape, &patience, err);

    if (!found && call->lane == MT_LANE_SMALL)
        call->lane = MT_LANE_COMPILE;
    else if (!found && hurry && mt_patience_over(&patience))
        call->lane = MT_LANE_LARGE;
    return found;
}

/* Warns that parts of a schema are not enforced: once, even though each prompt of a call has its constraint. */
static void warn(mt_call *call, const char *left_out)
{
    if (*left_out && !(call->warning && strstr(call->warning, left_out)))
        mt_call_warn(call, "not enforced of the schema: %s", left_out);
}

/* Finds the constraint for the answer to a prompt, where the ask needs one. False: *why, or the call's lane has
   changed. */
static bool constrain(mt_call *call, const mt_ask *ask, mt_token_prompt *prompt, mt_failure *why)
{
    const mt_served *served = call->served;
    mt_shape shape = {.source = ask->source,
                      .calls = ask->calls,
                      .names = ask->call_names,
                      .one = !ask->parallel_calls,
                      .tools = ask->chat.tools,
                      .formats = {.tools = "none", .reasoning = "none"},
                      .opened = prompt->opened};
    mt_error err = {0};

    if (ask->is_chat)
        shape.formats = formats_of(served, ask, prompt);
    if (!mt_shape_needed(&shape))
        return true;
    if (ask->calls == MT_SHAPE_CALLS_REQUIRED && !ask->chat.tools)
        return mt_failure_value(why, "tool_choice", "is given without \"tools\": send some, or leave it out");
    if (!served->constraints)
        return mt_failure_set(why, 400, "no_tokenizer", ask->source_field,
                              "the model \"%s\" has no tokenizer: leave \"%s\" out", served->name, ask->source_field);
    prompt->constraint = find_constraint(call, &shape, &err);
    if (prompt->constraint) {
        warn(call, mt_constraint_left_out(prompt->constraint));
        return true;
    }
    if (err.code == MT_E_BUSY)
        return mt_failure_from(why, &err, NULL);
    return mt_failure_set(why, 400, "invalid_value", err.field ? err.field : ask->source_field, "%s", err.text);
}

/* The request holds its constraint until it is freed. */
static bool set_constraint(mt_request *r, const mt_token_prompt *prompt, mt_failure *why)
{
    if (!prompt->constraint)
        return true;
    r->constraint = mt_constraint_hold(prompt->constraint);
    if (mt_arena_defer(r->arena, release_constraint, r->constraint))
        return true;
    mt_constraint_release(r->constraint);
    return mt_failure_memory(why, NULL);
}

static bool fill(mt_request *r, mt_call *call, const mt_ask *ask, const mt_token_prompt *prompt, mt_failure *why)
{
    const mt_served *served = call->served;
    const bool echoed = ask->form.echo && ask->sampling.logprobs >= 0;
    const mt_parse_settings parsing = ask->is_chat ? parsing_of(served, ask, prompt) : (mt_parse_settings){0};

    r->name = mt_arena_strdup(r->arena, call->id);
    r->prompt = mt_arena_copy(r->arena, prompt->ids, prompt->count * sizeof(*prompt->ids));
    r->prompt_len = prompt->count;
    r->cuts = mt_arena_copy(r->arena, prompt->cuts, prompt->cut_count * sizeof(*prompt->cuts));
    r->cut_count = prompt->cut_count;
    if (!r->name || !r->prompt || !r->cuts)
        return mt_failure_memory(why, NULL);
    mt_client_mark(call, ask, r);
    r->choices = (uint32_t)ask->n;
    /* The parser needs special tokens that are markers */
    r->skip_special = ask->skip_special_tokens && !mt_parse_needed(&parsing);
    r->include_stop = ask->include_stop;
    r->prompt_logprobs = ask->form.prompt_logprobs >= 0 || echoed;
    r->prompt_top = (int)(echoed && ask->sampling.logprobs > ask->form.prompt_logprobs ? ask->sampling.logprobs
                                                                                       : ask->form.prompt_logprobs);
    r->prompt_top = r->prompt_top < 0 ? 0 : r->prompt_top;
    r->repeat_limit = (uint32_t)ask->repeat_limit;
    return set_max_tokens(r, served, ask, why) && set_sampling(r, call, ask, why) && set_stop(r, ask, why) &&
           set_constraint(r, prompt, why) && set_expected(r, call, ask, why) &&
           (!ask->is_chat || mt_thinking_limit(r, call, ask, prompt, &parsing, why));
}

/* The text of a prompt, in the arena. */
static bool text_of(mt_arena *arena, const mt_served *served, const mt_token_prompt *prompt, mt_chat_text *out,
                    mt_failure *why)
{
    mt_buf text = {.limit = MT_LIMIT_ANSWER_BYTES};
    char *copy;

    if (prompt->text.data)
        mt_buf_add(&text, prompt->text.data, prompt->text.len);
    else if (served->tokenizer && !mt_tokenizer_decode(served->tokenizer, prompt->ids, prompt->count, false, &text))
        text.full = true;
    copy = text.full ? NULL : mt_arena_copy(arena, text.data, text.len);
    *out = (mt_chat_text){.data = copy, .len = text.len};
    mt_buf_free(&text);
    return copy || mt_failure_memory(why, NULL);
}

/* Gives the answer a parser for reasoning and tool calls, where the model's formats need one. */
static bool set_parser(mt_answer *a, const mt_served *served, const mt_ask *ask, const mt_token_prompt *prompt,
                       mt_failure *why)
{
    const mt_parse_settings settings = parsing_of(served, ask, prompt);
    mt_error err = {0};

    return !mt_parse_needed(&settings) || mt_answer_parse(a, &settings, &err) || mt_failure_from(why, &err, NULL);
}

static bool make_answer(mt_call *call, const mt_ask *ask, const mt_token_prompt *prompts, size_t count, mt_failure *why)
{
    const mt_served *served = call->served;
    mt_answer *a = mt_call_answer(call, ask, count, served->name, why);

    if (!a)
        return false;
    a->tokenizer = served->tokenizer;
    a->eos = served->generation.eos;
    a->eos_count = served->generation.eos_count;
    for (size_t i = 0; i < count; i++) {
        a->prompts[i].ids = prompts[i].ids;
        a->prompts[i].count = prompts[i].count;
        if ((ask->form.echo || ask->form.prompt_text) &&
            !text_of(a->arena, served, &prompts[i], &a->prompts[i].echo, why))
            return false;
    }
    return !ask->is_chat || set_parser(a, served, ask, &prompts[0], why);
}

/* Refuses logprobs of an answer that is not streamed, or is repeated at its end, where keeping them would take too
   much. */
static bool check_kept(const mt_dialect *dialect, const mt_ask *ask, const mt_request *r, size_t count, mt_failure *why)
{
    const double each = (double)sizeof(mt_said) + (double)sizeof(mt_logprob) * ((double)(ask->sampling.logprobs + 1) +
                                                                                (double)ask->sampling.logprob_count);

    if ((ask->form.stream && !dialect->repeats) || ask->sampling.logprobs < 0 ||
        each * (double)r->max_tokens * (double)ask->n * (double)count <= (double)MT_LIMIT_RESPONSE_BYTES)
        return true;
    return mt_failure_set(why, 400, "invalid_value", "logprobs",
                          "the logprobs of so long an answer are more than may be kept: stream it, or send a smaller "
                          "\"max_tokens\"");
}

/* A prompt that can never fit is a 400: the client must change it, not retry. */
static bool refused(const mt_error *err, const mt_ask *ask, mt_failure *why)
{
    if (err->code == MT_E_TOO_LARGE)
        return mt_failure_set(why, 400, "context_length_exceeded", field_of(ask), "%s", err->text);
    if (err->code == MT_E_INVALID)
        return mt_failure_set(why, 400, "invalid_value", err->field, "%s", err->text);
    return mt_failure_from(why, err, NULL);
}

static bool give_pictures(const mt_ask *ask, mt_token_prompt *prompt, mt_request *r, mt_failure *why)
{
    mt_error err;

    return mt_pictures_give(&prompt->pictures, r, &err) || mt_failure_from(why, &err, field_of(ask));
}

/* Seconds of a processor that preparing has taken so far in this lane. */
static double seconds_of(const mt_prep *prep)
{
    return prep->decoding + (double)(mt_clock_thread_ns() - prep->begin) * 1e-9;
}

/* Makes the requests of all prompts and hands them to the engine. */
static bool submit(mt_call *call, const mt_ask *ask, mt_token_prompt *prompts, size_t count, mt_failure *why)
{
    mt_request *requests[MT_LIMIT_CHOICES];
    mt_error err;
    size_t made = 0;
    bool ok = true;

    for (; ok && made < count; made++) {
        requests[made] = mt_request_new();
        ok = check_prompt(call->served, ask, &prompts[made], why) &&
             fill(requests[made], call, ask, &prompts[made], why) &&
             check_kept(call->dialect, ask, requests[made], count, why) &&
             give_pictures(ask, &prompts[made], requests[made], why);
        requests[made]->spent = (call->prep.earlier + seconds_of(&call->prep)) / (double)count;
    }
    if (ok)
        return mt_call_submit(call, requests, count, &err) || refused(&err, ask, why);
    for (size_t i = 0; i < made; i++)
        mt_request_free(requests[i]);
    return false;
}

/* Answers with the text of the prompt. */
static bool tell_prompt(mt_call *call, const mt_ask *ask, const mt_token_prompt *prompt, mt_failure *why)
{
    mt_chat_text text;

    if (!text_of(ask->arena, call->served, prompt, &text, why))
        return false;
    call->dialect->rendered(call->dialect, &call->text, ask, call->served->name, text, prompt->pictures.count);
    return true;
}

/* Whether a call goes to another lane, since it brings pictures or a template of its own. */
static bool takes_long(mt_call *call, const json_t *body, bool pictures)
{
    const bool own =
        call->served && call->served->own_templates && json_is_string(json_object_get(body, "chat_template"));
    const mt_lane lane = call->lane;

    if (lane != MT_LANE_MEDIA && pictures)
        call->lane = MT_LANE_MEDIA;
    else if (own && lane == MT_LANE_SMALL)
        call->lane = MT_LANE_LARGE;
    return call->lane != lane;
}

/* Puts what a created model begins with before the chat. Its template is taken where those of clients are. */
static bool begin_created(mt_call *call, mt_ask *ask, mt_failure *why)
{
    const bool has = json_string_length(json_object_get(call->created, "template")) > 0;

    if (has && !call->served->own_templates && !mt_body_get(ask->body, "chat_template"))
        return mt_failure_set(
            why, 400, "unsupported_value", "model",
            "the model was created with a chat template, and this server takes none from its clients: "
            "start it with --allow-chat-template, or create the model without \"template\"");
    return mt_created_chat(call->created, ask, why);
}

/* Begins each conversation of the ask with what a created model begins with. */
static bool begin_all(mt_call *call, mt_ask *ask, mt_failure *why)
{
    bool ok = begin_created(call, ask, why);

    for (size_t i = 0; ok && i < ask->further_count; i++) {
        const mt_chat first = ask->chat;

        ask->chat = ask->further[i];
        ok = mt_created_chat(call->created, ask, why);
        ask->further[i] = ask->chat;
        ask->chat = first;
    }
    return ok;
}

static bool has_media(const mt_ask *ask)
{
    bool has = mt_chat_has_media(&ask->chat) || mt_chat_has_documents(&ask->chat);

    for (size_t i = 0; i < ask->further_count; i++)
        has = has || mt_chat_has_media(&ask->further[i]) || mt_chat_has_documents(&ask->further[i]);
    return has;
}

/* Reads what the body asks for into the preparation's ask. */
static bool read_ask(mt_call *call, mt_preparation *p, mt_failure *why)
{
    mt_ask *ask = p->ask;

    if (p->read)
        return true;
    if (!mt_account_may(call->account, mt_clock_ns(), why))
        return false;
    mt_prefix_name(ask->body, call->prefix);
    if ((call->created && !mt_created_settings(call->created, ask, why)) || !call->dialect->read(ask, why) ||
        (call->created && ask->is_chat && !begin_all(call, ask, why)))
        return false;
    /* An account that may not unload models does not decide how long they stay loaded, either */
    mt_fleet_keep(call->waiter.member, mt_models_may(call->server, call->account, NULL) ? ask->keep_alive : NAN);
    p->read = true;
    return true;
}

/* Makes the preparation's prompts. On failure they stay with the preparation, which frees their pictures. */
static bool make_prompts(mt_call *call, mt_preparation *p, mt_failure *why)
{
    mt_ask *ask = p->ask;
    mt_served *served = call->served;
    const size_t most = call->dialect->count ? mt_tokens_most(served) : MT_LIMIT_COUNTED * served->context;

    if (p->prompts)
        return true;
    if (ask->form.stream && ask->form.prompt_logprobs >= 0)
        return mt_failure_value(why, "prompt_logprobs", "are not streamed: send \"stream\" as false");
    if (!mt_tokens_make(served, ask, &call->prep, most, &p->prompts, &p->count, why))
        return false;
    if (*call->prep.told)
        mt_call_warn(call, "%s", call->prep.told);
    if (p->prompts[0].forgotten)
        mt_call_warn(call, "left out to make room: %zu messages", p->prompts[0].forgotten);
    return true;
}

static bool constrain_all(mt_call *call, mt_preparation *p, mt_failure *why)
{
    while (p->constrained < p->count && constrain(call, p->ask, &p->prompts[p->constrained], why))
        p->constrained++;
    return p->constrained == p->count;
}

/* Prepares a call that the engine, or a count of tokens, answers; goes on where the call changed its lane. False: *why,
   or the call's lane has changed. */
static bool prepare(mt_call *call, mt_preparation *p, mt_failure *why)
{
    mt_served *served = call->served;
    mt_ask *ask = p->ask;

    if (!read_ask(call, p, why))
        return false;
    if (ask->form.vectors && !ask->nothing)
        return mt_embed_prepare(call, ask, why);
    if (!ask->form.vectors && !check_answers(served, why))
        return false;
    if (ask->nothing) {
        call->dialect->nothing(call->dialect, &call->text, ask, served->name);
        return true;
    }
    if (ask->is_chat && takes_long(call, ask->body, has_media(ask)))
        return false;
    if (!make_prompts(call, p, why))
        return false;
    if (ask->renders)
        return tell_prompt(call, ask, &p->prompts[0], why);
    if (call->dialect->count) {
        call->dialect->count(&call->text, p->prompts[0].count);
        return true;
    }
    return constrain_all(call, p, why) && make_answer(call, ask, p->prompts, p->count, why) &&
           submit(call, ask, p->prompts, p->count, why);
}

/* True where the call goes to another lane, too. */
static bool prepare_answer(mt_call *call, const json_t *body, mt_failure *why)
{
    const mt_lane lane = call->lane;
    mt_preparation *p = mt_preparation_get(call, body, why);
    const bool ok = p && prepare(call, p, why);

    if (call->lane == lane)
        mt_preparation_free(call);
    else {
        call->prep.earlier += seconds_of(&call->prep);
        mt_preparation_park(call);
    }
    return ok || call->lane != lane;
}

static bool prepare_task(mt_call *call, const json_t *body, mt_failure *why)
{
    bool ok;

    if (takes_long(call, body, mt_chat_request_has_media(body)))
        return true;
    call->arena = mt_arena_new(MT_LIMIT_REQUEST_MEMORY);
    ok = call->task->run(call, body, &call->text, why);
    mt_arena_free(call->arena);
    call->arena = NULL;
    return ok;
}

/* Hands a call to its new lane. False: *why, too many wait there. */
static bool change_lane(mt_call *call, json_t *body, mt_failure *why)
{
    static const char *const kinds[] = {[MT_LANE_SMALL] = "",
                                        [MT_LANE_COMPILE] = " with new constraints",
                                        [MT_LANE_LARGE] = " that take long to prepare",
                                        [MT_LANE_MEDIA] = " with pictures"};
    const bool fits = call->lane != MT_LANE_LARGE ||
                      mt_workers_waiting(call->server->lanes[MT_LANE_LARGE]) < MT_LIMIT_PREPARING_LARGE;

    call->json = body;
    if (fits && mt_workers_add(call->server->lanes[call->lane], call))
        return true; /* the call may be freed already */
    call->json = NULL;
    return mt_failure_set(why, 429, "queue_full", NULL, "too many requests%s are waiting: try again in a moment",
                          kinds[call->lane]);
}

static const json_t *model_of(const mt_call *call, const json_t *body)
{
    return call->dialect && call->dialect->model ? call->dialect->model(body) : json_object_get(body, "model");
}

/* Gets the call its model. False: *why; or, with why->status 0, the call waits for its model and must not be
   touched. */
static bool find_model(mt_call *call, json_t *body, mt_failure *why)
{
    const json_t *model = model_of(call, body);
    const bool vectors = call->dialect && call->dialect->vectors;
    const uint64_t asked = mt_clock_ns();

    if (call->waiter.has || (call->task && call->task->no_model))
        return true;
    if (model && !json_is_null(model) && !json_is_string(model))
        return mt_failure_type(why, "model", model, "a string");
    if (json_is_string(model) && !mt_json_word(model))
        return mt_failure_nul(why, "model");
    if (call->dialect && call->dialect->named && json_string_length(model) == 0)
        return mt_failure_set(why, 400, "missing_field", "model", "model is required: name one as \"model\"");
    if (!call->created)
        call->created = mt_created_get(&call->server->creations, json_string_value(model));
    call->json = body; /* for the thread that goes on with it */
    switch (mt_fleet_take(&call->server->fleet, &call->waiter, &call->client,
                          json_string_value(call->created ? json_object_get(call->created, "from") : model), vectors,
                          why)) {
    case MT_FLEET_HAS: {
        call->json = NULL;
        call->loading = mt_clock_ns() - asked;
        return true;
    }
    case MT_FLEET_REFUSED: call->json = NULL; return false;
    case MT_FLEET_WAITS: break;
    }
    return false;
}

/* Answers a request to unload a model, which happens as soon as no call uses it. */
static bool unload(mt_call *call, json_t *body, mt_failure *why)
{
    const char *name = mt_json_word(json_object_get(body, "model"));
    const mt_ask ask = {.body = body, .extra = body, .nothing = "unload"};

    if (!mt_models_may(call->server, call->account, why))
        return false;
    if (!name || !*name)
        return mt_failure_set(why, 400, "missing_field", "model", "the model is missing: name one as \"model\"");
    if (!mt_created_unload(&call->server->creations, &call->server->fleet, name))
        return mt_fleet_lacks(name, "", why);
    call->dialect->nothing(call->dialect, &call->text, &ask, name);
    return true;
}

/* Whether the body only asks to unload a model, in the call's dialect. */
static bool is_unload(const mt_call *call, const json_t *body)
{
    return !call->task && call->dialect && call->dialect->unloads && call->dialect->unloads(call->dialect, body);
}

/* Ends preparation: posts the call's message, with *why where it failed. */
static void post(mt_call *call, json_t *body, const mt_failure *why)
{
    if (why)
        call->failure = *why;
    mt_preparation_free(call);
    mt_json_body_free(body, call->body_len);
    mt_room_give(&call->server->room, call->body_charge);
    call->body_charge = 0;
    mt_mailbox_post(call->server->mailbox, &call->prepared_message);
}

void mt_call_resume(mt_call *call, const mt_failure *why)
{
    json_t *body = call->json;
    mt_failure full = {.status = 0};

    call->loading = mt_clock_ns() - call->waiter.since;
    if (!why && mt_workers_add(call->server->lanes[call->lane], call))
        return; /* the call may be freed already */
    if (!why)
        mt_failure_set(&full, 429, "queue_full", NULL, "too many requests are waiting: try again in a moment");
    call->json = NULL;
    post(call, body, why ? why : &full);
}

/* Prepares a call, and hands it on where it is not yet done. */
static void prepare_call(mt_call *call, mt_prep *spent)
{
    const mt_lane lane = call->lane;
    mt_failure why = {.status = 0};
    call->refused = mt_alloc_refused();
    json_t *body = mt_call_body(call, &why);
    const bool unloads = body && is_unload(call, body);
    bool ok = body && !mt_timeout_read(call, body, &why) ? false
              : unloads                                  ? unload(call, body, &why)
              : body                                     ? find_model(call, body, &why)
                                                         : call->lane != lane;

    if (!ok && body && !why.status)
        return; /* it waits for its model, and may be freed already */
    if (ok && body && !unloads) {
        call->served = call->waiter.has ? &call->waiter.member->served : NULL;
        ok = (call->task ? prepare_task : prepare_answer)(call, body, &why);
        spent->decoding = call->prep.decoding;
        mt_account_spend(call->account, seconds_of(&call->prep));
    }
    if (ok && call->lane != lane) {
        ok = change_lane(call, body, &why);
        if (ok)
            return;
    }
    if (mt_alloc_refused() != call->refused && (!ok || !call->answer))
        ok = mt_failure_starved(&why); /* even where it looked like another error */
    post(call, body, ok ? NULL : &why);
}

double mt_call_prepare(mt_call *call)
{
    mt_prep spent = {.begin = mt_clock_thread_ns()};

    call->prep.begin = spent.begin;
    call->prep.decoding = 0;
    prepare_call(call, &spent); /* the call may be freed */
    return seconds_of(&spent);
}
