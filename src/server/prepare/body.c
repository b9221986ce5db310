/* From the bytes of a request's body to parsed JSON, for prepare.c. Runs on preparation threads. */
#include "api/json_body.h"
#include "base/alloc.h"
#include "http/coding.h"
#include "http/limits.h"
#include "server/inside.h"

/* Says why a body could not be unpacked. most: the bytes it might have had. Returns false. */
static bool refuse(mt_http_unpacked result, size_t most, mt_failure *why)
{
    switch (result) {
    case MT_HTTP_UNPACK_TOO_LARGE:
        return mt_failure_set(why, 413, "request_too_large", NULL,
                              "the body has more than %zu bytes when it is unpacked: send less in one request", most);
    case MT_HTTP_UNPACK_NO_ROOM:
        return mt_failure_set(why, 503, "overloaded", NULL,
                              "too many large requests are being read at once: try again in a moment");
    case MT_HTTP_UNPACK_STOPPED:
        return mt_failure_set(why, 409, "cancelled", NULL, "the request was cancelled while it was read");
    default:
        return mt_failure_set(why, 400, "invalid_encoding", NULL,
                              "the body is not what its content-encoding says: send it as it is, or pack it again");
    }
}

/* Replaces a compressed body by the plain one. False: *why; or, with the lane changed to MT_LANE_LARGE, the plain body
   is too large for this lane: it is unpacked again in the other. */
static bool unpack(mt_call *call, mt_failure *why)
{
    const bool large = call->lane == MT_LANE_LARGE;
    const size_t most = large ? call->server->body_most : MT_LIMIT_SMALL_BODY, packed = call->body_charge;
    mt_http_unpacked result;
    mt_buf body;

    mt_buf_init(&body, most < call->server->body_most ? most : call->server->body_most);
    result = mt_http_unpack(call->coding, call->body, call->body_len, &body, &call->server->room, &call->body_charge,
                            &call->stop);
    if (result == MT_HTTP_UNPACKED) {
        mt_room_give(&call->server->room, packed);
        call->body_charge -= packed;
        call->coding = MT_HTTP_PLAIN;
        mt_free(call->body);
        call->body = mt_realloc(body.data, body.cap, body.len + 1);
        call->body_len = body.len;
        return true;
    }
    mt_room_give(&call->server->room, call->body_charge - packed);
    call->body_charge = packed;
    mt_buf_free(&body);
    if (result == MT_HTTP_UNPACK_TOO_LARGE && body.limit < call->server->body_most) {
        call->lane = MT_LANE_LARGE;
        return false;
    }
    return refuse(result, body.limit, why);
}

/* Puts the model that the path names into the body, where the body of other APIs names it. Returns the body, or NULL:
   *why. */
static json_t *name_model(mt_call *call, json_t *body, mt_failure *why)
{
    if (!body || !call->names_model || json_object_set_new(body, "model", json_string(call->param)) == 0)
        return body;
    mt_json_body_free(body, call->body_len);
    mt_failure_set(why, 400, "invalid_value", "model", "the name of the model in the path is not UTF-8: send it so");
    return NULL;
}

/* Parses the bytes of the body. NULL: *why, or the call's lane has changed. */
static json_t *read_body(mt_call *call, mt_failure *why)
{
    const mt_lane lane = call->lane;
    json_t *body = NULL;

    if (call->coding == MT_HTTP_PLAIN || unpack(call, why))
        body = mt_json_body_parse(call->body, call->body_len, &call->stop, why);
    if (call->lane != lane)
        return NULL;
    mt_free(call->body);
    call->body = NULL;
    return name_model(call, body, why);
}

json_t *mt_call_body(mt_call *call, mt_failure *why)
{
    json_t *body = call->json;

    call->json = NULL;
    if (mt_call_cancelled(call)) {
        mt_json_body_free(body, call->body_len);
        mt_free(call->body);
        call->body = NULL;
        mt_failure_set(why, 409, "cancelled", NULL, "the request was cancelled before it began");
        return NULL;
    }
    if (body)
        return body;
    return call->bodiless ? json_object() : read_body(call, why);
}
