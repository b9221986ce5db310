/* Tasks that need the tokenizer or the template but not the model: /tokenize, /detokenize, /apply-template. */

#include "api/chat_body.h"
#include "api/limits.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/json_write.h"
#include "base/utf8.h"
#include "server/inside.h"
#include "server/prepare/tokens.h"
#include "weights/limits.h"

static bool read_flag(const json_t *body, const char *name, bool *value, mt_failure *why)
{
    const json_t *given = json_object_get(body, name);

    if (!given || json_is_null(given))
        return true;
    *value = json_is_true(given);
    return json_is_boolean(given) || mt_failure_type(why, name, given, "true or false");
}

/* The tokens as the tokenizer's file has them. */
static void add_spellings(const mt_served *served, const mt_token_prompt *p, mt_buf *out)
{
    mt_json_write(out, "'token_strs':[");
    for (size_t i = 0; i < p->count; i++) {
        size_t len = 0;
        const char *token = mt_tokenizer_token(served->tokenizer, p->ids[i], &len);

        mt_json_text(out, NULL, token ? token : "", len);
    }
    mt_json_write(out, "]");
}

static bool is_text(const mt_buf *bytes)
{
    size_t at = 0, len;

    while (at < bytes->len && (len = mt_utf8_length(bytes->data + at, bytes->len - at)) > 0)
        at += len;
    return at == bytes->len;
}

/* [{"id":..,"piece":..}], as llama.cpp has it; a piece that is a part of a character is a list of its bytes. */
static void add_pieces(const mt_served *served, const mt_token_prompt *p, mt_buf *out)
{
    mt_buf bytes = {.limit = MT_LIMIT_TOKEN_BYTES};

    mt_json_write(out, "{'tokens':[");
    for (size_t i = 0; i < p->count; i++) {
        bytes.len = 0;
        mt_tokenizer_bytes(served->tokenizer, p->ids[i], &bytes);
        mt_json_write(out, "{'id':%u", (unsigned)p->ids[i]);
        if (is_text(&bytes))
            mt_json_text(out, "piece", bytes.data, bytes.len);
        else {
            mt_json_write(out, "'piece':[");
            for (size_t k = 0; k < bytes.len; k++)
                mt_json_write(out, "%u", (unsigned)(unsigned char)bytes.data[k]);
            mt_json_write(out, "]");
        }
        mt_json_write(out, "}");
    }
    mt_json_write(out, "]}");
    mt_buf_free(&bytes);
}

/* A body of llama.cpp's: {"content": text}. */
static bool tokenize_content(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const json_t *content = json_object_get(body, "content");
    mt_ask_piece piece = {.text = mt_chat_text_of(content)};
    bool add_special = false, parse_special = true, with_pieces = false;
    mt_token_prompt tokens;

    if (!json_is_string(content))
        return mt_failure_type(why, "content", content, "a string");
    if (!read_flag(body, "add_special", &add_special, why) || !read_flag(body, "parse_special", &parse_special, why) ||
        !read_flag(body, "with_pieces", &with_pieces, why))
        return false;
    piece.plain = !parse_special;
    if (!mt_tokens_join(call->served, call->arena, &piece, 1, add_special, &call->stop, mt_tokens_most(call->served),
                        &tokens, why))
        return false;
    if (with_pieces)
        add_pieces(call->served, &tokens, out);
    else {
        mt_json_write(out, "{");
        mt_write_ids(out, "tokens", tokens.ids, tokens.count);
        mt_json_write(out, "}");
    }
    return true;
}

static bool read_tokens(mt_call *call, const json_t *body, mt_token_prompt *tokens, mt_failure *why)
{
    const json_t *prompt = json_object_get(body, "prompt");
    const mt_chat_text text = {.data = json_string_value(prompt), .len = json_string_length(prompt)};
    bool add_special = true;

    if (!text.data && !json_object_get(body, "messages"))
        return mt_failure_type(why, "prompt", prompt, "a string, or \"messages\"");
    if (!read_flag(body, "add_special_tokens", &add_special, why))
        return false;
    if (text.data)
        return mt_tokens_encode(call->served, call->arena, text, add_special, &call->stop, mt_tokens_most(call->served),
                                tokens, why);
    return mt_tokens_request(call->served, call->arena, body, &call->prep, tokens, NULL, why);
}

/* The body is {"prompt": text} or {"messages": [...]}, or llama.cpp's {"content": text}. */
static bool answer_tokenize(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const mt_served *served = call->served;
    mt_token_prompt tokens = {.count = 0};
    bool spelled = false, ok;

    if (mt_body_get(body, "content"))
        return tokenize_content(call, body, out, why);
    ok = read_flag(body, "return_token_strs", &spelled, why) && read_tokens(call, body, &tokens, why);

    if (ok) {
        mt_json_write(out, "{'count':%zu,'max_model_len':%zu", tokens.count, served->context);
        mt_write_ids(out, "tokens", tokens.ids, tokens.count);
        if (spelled)
            add_spellings(served, &tokens, out);
        else
            mt_json_write(out, "'token_strs':null");
        mt_json_write(out, "}");
    }
    mt_pictures_free(&tokens.pictures);
    return ok;
}

const mt_task mt_task_tokenize = {.run = answer_tokenize};

static bool decode(const mt_served *served, const mt_ask_prompt *ids, bool skip_special, mt_buf *out, mt_failure *why)
{
    mt_buf text = {.limit = MT_LIMIT_ANSWER_BYTES};
    bool ok;

    if (!served->tokenizer)
        return mt_failure_set(why, 400, "no_tokenizer", NULL, "the model \"%s\" has no tokenizer", served->name);
    ok = mt_tokenizer_decode(served->tokenizer, ids->ids, ids->count, skip_special, &text) ||
         mt_failure_set(why, 413, "request_too_large", "tokens", "the text is too long: send the ids in parts");
    if (ok) {
        mt_json_write(out, "{");
        mt_json_text(out, "prompt", text.data, text.len);
        mt_json_text(out, "content", text.data, text.len); /* its name in llama.cpp's API */
        mt_json_write(out, "}");
    }
    mt_buf_free(&text);
    return ok;
}

static bool answer_detokenize(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const json_t *tokens = json_object_get(body, "tokens");
    bool skip_special = false;
    mt_ask_prompt ids;

    if (!json_is_array(tokens))
        return mt_failure_type(why, "tokens", tokens, "a list of token ids");
    return read_flag(body, "skip_special_tokens", &skip_special, why) &&
           mt_openai_ids_read(call->arena, "tokens", tokens, &ids, why) &&
           decode(call->served, &ids, skip_special, out, why);
}

const mt_task mt_task_detokenize = {.run = answer_detokenize};

static bool answer_apply_template(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_token_prompt tokens = {.count = 0};
    mt_chat_text text;
    const bool ok = mt_tokens_request(call->served, call->arena, body, &call->prep, &tokens, &text, why);

    if (ok) {
        mt_json_write(out, "{");
        mt_json_text(out, "prompt", text.data, text.len);
        mt_json_write(out, "}");
    }
    mt_pictures_free(&tokens.pictures);
    return ok;
}

const mt_task mt_task_apply_template = {.run = answer_apply_template};
