/* See lmstudio.h. */
#include "api/lmstudio.h"

#include "api/lmstudio_socket.h"
#include "base/json_write.h"
#include "base/version.h"

const char *mt_lmstudio_stop(const mt_answer *a, const mt_choice *c)
{
    const bool full = a->about.context && a->prompts[c->prompt].count + c->tokens >= a->about.context;

    switch (c->finish) {
    case MT_FINISH_LENGTH: return full ? "contextLengthReached" : "maxPredictedTokensReached";
    case MT_FINISH_CANCELLED: return "userStopped";
    case MT_FINISH_STOP: return mt_speech_callable(&c->speech) ? "toolCalls" : c->stop ? "stopStringFound" : "eosFound";
    default: return "failed";
    }
}

void mt_lmstudio_more(mt_buf *out, const mt_answer *a)
{
    const mt_choice *c = &a->choices[0];
    const double spoke = (double)c->spoke * 1e-9;

    mt_json_write(out,
                  "'stats':{'tokens_per_second':%.3f,'time_to_first_token':%.3f,'generation_time':%.3f,"
                  "'stop_reason':%s}",
                  spoke > 0 && c->tokens > 1 ? (double)(c->tokens - 1) / spoke : 0, (double)c->waited * 1e-9, spoke,
                  mt_lmstudio_stop(a, c));
    mt_json_write(out,
                  "'model_info':{'arch':%s,'quant':%s,'format':'safetensors','context_length':%zu},"
                  "'runtime':{'name':'motet','version':%s,'supported_formats':['safetensors']}",
                  a->about.family ? a->about.family : "", a->about.quantisation ? a->about.quantisation : "",
                  a->about.context, mt_version);
}
