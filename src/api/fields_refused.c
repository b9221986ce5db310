/* Fields of other servers that would change the answer and are not supported here. Clients that send one rely on it, so
   it is an error, unless its value asks for nothing: null, false, "", [], {}, or the number in the field's row. */
#include "api/fields.h"
#include "base/compiler.h"

/* best_of: that many answers are made, and the best n of them returned. Accepted where it equals n: then there is
   nothing to choose. */
static bool read_best_of(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (json_is_integer(value) && json_integer_value(value) == ask->n)
        return true;
    return mt_failure_unsupported(why, name, "is not supported: leave it out, or send n");
}

static const mt_field fields[] = {
    MT_FIELD_OTHER_ROW("best_of", read_best_of),
    /* vLLM's */
    MT_FIELD_REFUSED_ROW("use_beam_search", 0),
    MT_FIELD_REFUSED_ROW("length_penalty", 1),
    MT_FIELD_REFUSED_ROW("early_stopping", 0),
    MT_FIELD_REFUSED_ROW("prompt_embeds", 0),
    MT_FIELD_REFUSED_ROW("logits_processors", 0),
    MT_FIELD_REFUSED_ROW("repetition_detection", 0),
    MT_FIELD_REFUSED_ROW("guided_whitespace_pattern", 0),
    MT_FIELD_REFUSED_ROW("vllm_xargs", 0),
    MT_FIELD_REFUSED_ROW("kv_transfer_params", 0),
    /* SGLang's */
    MT_FIELD_REFUSED_ROW("no_stop_trim", 0),
    MT_FIELD_REFUSED_ROW("lora_path", 0),
    MT_FIELD_REFUSED_ROW("stop_regex", 0),
    MT_FIELD_REFUSED_ROW("custom_logit_processor", 0),
    MT_FIELD_REFUSED_ROW("return_hidden_states", 0),
    /* llama.cpp's and its kin's */
    MT_FIELD_REFUSED_ROW("dry_multiplier", 0),
    MT_FIELD_REFUSED_ROW("xtc_probability", 0),
    MT_FIELD_REFUSED_ROW("mirostat", 0),
    MT_FIELD_REFUSED_ROW("mirostat_mode", 0),
    MT_FIELD_REFUSED_ROW("top_n_sigma", -1),
    MT_FIELD_REFUSED_ROW("top_a", 0),
    MT_FIELD_REFUSED_ROW("tfs_z", 1),
    MT_FIELD_REFUSED_ROW("dynatemp_range", 0),
    MT_FIELD_REFUSED_ROW("smoothing_factor", 0),
    MT_FIELD_REFUSED_ROW("no_repeat_ngram_size", 0),
    MT_FIELD_REFUSED_ROW("guidance_scale", 1),
    MT_FIELD_REFUSED_ROW("samplers", 0),
    MT_FIELD_REFUSED_ROW("n_probs", 0),
    MT_FIELD_REFUSED_ROW("grammar_lazy", 0),
    MT_FIELD_REFUSED_ROW("lora", 0),
    MT_FIELD_REFUSED_ROW("t_max_predict_ms", 0),
};
const mt_field_table mt_fields_refused = {fields, MT_COUNT(fields)};
