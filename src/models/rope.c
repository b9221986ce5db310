/* Frequencies of rotary embeddings and their scalings, computed once at load in double and rounded to float once. */
#include <math.h>
#include <string.h>

#include "base/words.h"
#include "device/limits.h"
#include "models/family.h"
#include "sample/limits.h"

#define PI 3.14159265358979323846

/* Numbers of a scaling, as config.json names them. */
typedef struct scaling {
    double factor, original, low, high, fast, slow;
} scaling;

static void scale_linear(double *f, size_t half, double factor)
{
    for (size_t i = 0; i < half; i++)
        f[i] /= factor;
}

/* Sets the frequencies of all pairs but the first `part` to 0; the others are those of a whole head. */
static void keep_part(double *f, size_t half, double part)
{
    for (size_t i = (size_t)(part * (double)half); i < half; i++)
        f[i] = 0;
}

static bool read_part(double *f, size_t half, const mt_config *p, double factor, mt_error *err)
{
    double part;
    if (!mt_config_float(p, "partial_rotary_factor", 1, 0, 1, &part, err))
        return false;
    keep_part(f, half, part);
    scale_linear(f, half, factor);
    return true;
}

/* Llama 3: long wavelengths are stretched, short ones kept, those between interpolated. */
static void scale_llama3(double *f, size_t half, const scaling *s)
{
    for (size_t i = 0; i < half; i++) {
        const double turns = s->original * f[i] / (2 * PI); /* turns within the original context */
        if (turns < s->low) {
            f[i] /= s->factor;
        } else if (turns <= s->high) {
            const double keep = (turns - s->low) / (s->high - s->low);
            f[i] = (1 - keep) * f[i] / s->factor + keep * f[i];
        }
    }
}

/* Divides each frequency by a factor of its own. */
static bool divide_each(double *f, size_t half, const mt_config *p, const char *key, mt_error *err)
{
    if (mt_config_array(p, key) != half)
        return mt_fail(err, MT_E_INVALID, "\"%s\" has %zu numbers for %zu frequencies", key, mt_config_array(p, key),
                       half);
    for (size_t i = 0; i < half; i++) {
        const double factor = mt_config_array_float(p, key, i, 0);
        if (!(factor > 0))
            return mt_fail(err, MT_E_INVALID, "\"%s\" has %g, which is not above 0", key, factor);
        f[i] /= factor;
    }
    return true;
}

/* YaRN: the index of the pair that turns `turns` times within the original context. */
static double yarn_pair(double turns, double dim, double theta, double original)
{
    return dim * log(original / (turns * 2 * PI)) / (2 * log(theta));
}

/* YaRN: frequencies that turn often are kept, slow ones are stretched, those between are interpolated. */
static void scale_yarn(double *f, size_t half, const scaling *s, double theta, bool truncate)
{
    const double dim = 2 * (double)half;
    double low = yarn_pair(s->fast, dim, theta, s->original), high = yarn_pair(s->slow, dim, theta, s->original);
    if (truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, dim - 1);
    if (low == high)
        high += 0.001;
    for (size_t i = 0; i < half; i++) {
        const double ramp = fmin(fmax(((double)i - low) / (high - low), 0), 1);
        f[i] = f[i] / s->factor * ramp + f[i] * (1 - ramp);
    }
}

static double yarn_magnitude(double factor, double m)
{
    return factor <= 1 ? 1 : 0.1 * m * log(factor) + 1;
}

/* Reads a scaling's numbers. The original context may also stand beside the parameters object, and counts there. YaRN
   without a factor stretches the original context to the whole one. */
static bool read_scaling(scaling *s, const mt_config *c, const mt_config *p, bool yarn, uint32_t context, mt_error *err)
{
    static const char original[] = "original_max_position_embeddings";
    return mt_config_float(mt_config_has(c, original) ? c : p, original, context, 1, MT_LIMIT_CONTEXT, &s->original,
                           err) &&
           mt_config_float(p, "factor", yarn ? context / s->original : 1, 1e-6, 1e6, &s->factor, err) &&
           mt_config_float(p, "low_freq_factor", 1, 1e-6, 1e6, &s->low, err) &&
           mt_config_float(p, "high_freq_factor", 4, 1e-6, 1e6, &s->high, err) &&
           mt_config_float(p, "beta_fast", 32, 1e-6, 1e6, &s->fast, err) &&
           mt_config_float(p, "beta_slow", 1, 1e-6, 1e6, &s->slow, err);
}

static bool read_yarn_scale(mt_rope *rope, const mt_config *p, double factor, mt_error *err)
{
    double given, m, m_all;
    if (!mt_config_float(p, "attention_factor", 0, 0, 1e6, &given, err) ||
        !mt_config_float(p, "mscale", 0, 0, 1e6, &m, err) ||
        !mt_config_float(p, "mscale_all_dim", 0, 0, 1e6, &m_all, err))
        return false;
    if (given > 0)
        rope->scale = (float)given;
    else if (m > 0 && m_all > 0)
        rope->scale = (float)(yarn_magnitude(factor, m) / yarn_magnitude(factor, m_all));
    else
        rope->scale = (float)yarn_magnitude(factor, 1);
    return true;
}

/* LongRoPE has factors for texts within the original context and others for longer ones. Which of them hold depends on
   the length of the whole text in transformers, so that keys of earlier positions would have to be computed again; here
   they are those of the original context, to which the context is limited (limit_context). */
static bool scale_long(mt_rope *rope, double *f, const mt_config *p, double original, uint32_t context, mt_error *err)
{
    double factor, given;
    if (!mt_config_float(p, "factor", context / original, 1e-6, 1e6, &factor, err) ||
        !mt_config_float(p, "attention_factor", 0, 0, 1e6, &given, err))
        return false;
    if (given > 0)
        rope->scale = (float)given;
    else if (factor > 1)
        rope->scale = (float)sqrt(1 + log(factor) / log(original));
    return divide_each(f, rope->half, p, "short_factor", err);
}

bool mt_rope_is_long(const char *type)
{
    return strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0;
}

/* Applies the scaling that the parameters p name to the plain frequencies f. */
static bool apply(mt_rope *rope, double *f, const mt_config *c, const mt_config *p, double theta, uint32_t context,
                  mt_error *err)
{
    /* "dynamic" depends on the text's length, but only beyond the model's context, so it is plain here */
    static const char *const plain[] = {"default", "mrope", "dynamic", NULL};
    const bool yarn = strcmp(rope->type, "yarn") == 0;
    scaling s;

    if (mt_words_have(plain, rope->type))
        return true;
    if (!read_scaling(&s, c, p, yarn, context, err))
        return false;
    if (strcmp(rope->type, "linear") == 0) {
        scale_linear(f, rope->half, s.factor);
    } else if (strcmp(rope->type, "proportional") == 0) {
        return read_part(f, rope->half, p, s.factor, err);
    } else if (strcmp(rope->type, "factors") == 0) {
        return divide_each(f, rope->half, p, "factors", err);
    } else if (mt_rope_is_long(rope->type)) {
        return scale_long(rope, f, p, s.original, context, err);
    } else if (strcmp(rope->type, "llama3") == 0) {
        scale_llama3(f, rope->half, &s);
    } else if (yarn) {
        scale_yarn(f, rope->half, &s, theta, mt_config_bool(p, "truncate", true));
        return read_yarn_scale(rope, p, s.factor, err);
    } else {
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "rope type \"%.64s\" is not known; known are default, dynamic, linear, llama3, yarn, "
                       "longrope, proportional and mrope",
                       rope->type);
    }
    return true;
}

static void begin(mt_rope *rope, const char *type, double theta, uint32_t dim, double *f)
{
    *rope = (mt_rope){.type = type, .theta = theta, .half = dim / 2, .scale = 1};
    for (size_t i = 0; i < rope->half; i++)
        f[i] = pow(theta, -2.0 * (double)i / (double)dim);
}

static bool finish(mt_rope *rope, const double *f, mt_arena *arena, mt_error *err)
{
    float *inv_freq = mt_arena_alloc(arena, rope->half * sizeof(*inv_freq));
    if (!inv_freq)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    for (size_t i = 0; i < rope->half; i++)
        inv_freq[i] = (float)f[i];
    rope->inv_freq = inv_freq;
    return true;
}

bool mt_rope_read_part(mt_rope *rope, double theta, double part, uint32_t dim, mt_arena *arena, mt_error *err)
{
    double f[MT_LIMIT_HEAD_DIM / 2];
    begin(rope, "proportional", theta, dim, f);
    keep_part(f, rope->half, part);
    return finish(rope, f, arena, err);
}

static const char *type_of(const mt_config *parameters)
{
    return parameters ? mt_config_string(parameters, "rope_type", mt_config_string(parameters, "type", "default"))
                      : "default";
}

bool mt_rope_read(mt_rope *rope, const mt_config *c, const mt_config *parameters, double theta, uint32_t dim,
                  uint32_t context, mt_arena *arena, mt_error *err)
{
    double f[MT_LIMIT_HEAD_DIM / 2];
    if (parameters && !mt_config_float(parameters, "rope_theta", theta, 1, 1e12, &theta, err))
        return false;
    begin(rope, type_of(parameters), theta, dim, f);
    return (!parameters || apply(rope, f, c, parameters, theta, context, err)) && finish(rope, f, arena, err);
}

const mt_config *mt_rope_parameters(const mt_config *c)
{
    const mt_config *older = mt_config_object(c, "rope_scaling");
    return older && !mt_config_empty(older) ? older : mt_config_object(c, "rope_parameters");
}

/* With LongRoPE texts are limited to the original context. */
static bool limit_context(mt_model_spec *spec, const mt_config *c, const mt_config *parameters, mt_error *err)
{
    scaling s;
    if (!mt_rope_is_long(spec->ropes[0].type))
        return true;
    if (!read_scaling(&s, c, parameters, false, spec->context, err))
        return false;
    spec->context = s.original < spec->context ? (uint32_t)s.original : spec->context;
    return true;
}

bool mt_rope_read_one(mt_model_spec *spec, const mt_config *c, double default_theta, mt_arena *arena, mt_error *err)
{
    double theta;
    mt_rope *rope = mt_arena_alloc(arena, sizeof(*rope));
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    if (!mt_config_float(c, "rope_theta", default_theta, 1, 1e12, &theta, err))
        return false;
    spec->ropes = rope;
    spec->rope_count = 1;
    const mt_config *parameters = mt_rope_parameters(c);
    return mt_rope_read(rope, c, parameters, theta, spec->layer[0].attn.head_dim, spec->context, arena, err) &&
           limit_context(spec, c, parameters, err);
}

/* Where the part of a head that turns stands. It may stand twice, in the parameters and beside them; then transformers
   goes by the parameters, but by the number beside them where frequencies are scaled. */
static const mt_config *part_from(const mt_config *c, const mt_config *parameters)
{
    static const char *const whole[] = {"default", "mrope", NULL}, key[] = "partial_rotary_factor";
    const bool inside = parameters && mt_config_has(parameters, key);
    return inside && (mt_words_have(whole, type_of(parameters)) || !mt_config_has(c, key)) ? parameters : c;
}

bool mt_rope_read_first(mt_model_spec *spec, const mt_config *c, double default_theta, double default_part,
                        mt_arena *arena, mt_error *err)
{
    double theta, part;
    const mt_config *parameters = mt_rope_parameters(c);
    mt_rope *rope = mt_arena_alloc(arena, sizeof(*rope));
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    if (!mt_config_float(part_from(c, parameters), "partial_rotary_factor", default_part, 0, 1, &part, err) ||
        !mt_config_float(c, "rope_theta", default_theta, 1, 1e12, &theta, err))
        return false;
    const uint32_t head_dim = spec->layer[0].attn.head_dim, dim = (uint32_t)((double)head_dim * part);
    if (dim < 2 || dim % 2)
        return mt_fail(err, MT_E_INVALID, "\"partial_rotary_factor\" is %g, which makes %u of %u dimensions", part, dim,
                       head_dim);
    spec->ropes = rope;
    spec->rope_count = 1;
    return mt_rope_read(rope, c, parameters, theta, dim, spec->context, arena, err) &&
           limit_context(spec, c, parameters, err);
}

/* Interleaved M-RoPE: of each three frequencies one is for time, one for height and one for width, until the height's
   and width's sections are used up; the rest are for time. */
static void interleave(uint8_t *axis, size_t half, const int64_t section[3])
{
    for (size_t i = 0; i < half; i++)
        axis[i] = i % 3 > 0 && (int64_t)i < 3 * section[i % 3] ? (uint8_t)(i % 3) : 0;
}

static bool in_sections(uint8_t *axis, size_t half, const int64_t section[3], mt_error *err)
{
    if (section[0] + section[1] + section[2] != (int64_t)half)
        return mt_fail(err, MT_E_INVALID, "\"mrope_section\" is %d, %d, %d, which is not %zu together", (int)section[0],
                       (int)section[1], (int)section[2], half);
    for (size_t i = 0; i < half; i++)
        axis[i] = (int64_t)i < section[0] ? 0 : (int64_t)i < section[0] + section[1] ? 1 : 2;
    return true;
}

bool mt_rope_axes_read(mt_model_spec *spec, const mt_config *c, const uint32_t fallback[3], bool interleaved,
                       mt_arena *arena, mt_error *err)
{
    mt_rope *rope = mt_arena_alloc(arena, sizeof(*rope));
    uint8_t *axis = mt_arena_alloc(arena, spec->ropes[0].half);
    int64_t section[3];
    if (!rope || !axis)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    const mt_config *parameters = mt_rope_parameters(c);
    const bool given = parameters && mt_config_array(parameters, "mrope_section") == 3;
    for (size_t i = 0; i < 3; i++) {
        section[i] = given ? mt_config_array_int(parameters, "mrope_section", i, -1) : fallback[i];
        if (section[i] < 0 || section[i] > MT_LIMIT_HEAD_DIM)
            return mt_fail(err, MT_E_INVALID, "\"mrope_section\" is not three numbers between 0 and %d",
                           MT_LIMIT_HEAD_DIM);
    }
    *rope = spec->ropes[0];
    rope->axis = axis;
    spec->ropes = rope;
    if (!interleaved)
        return in_sections(axis, rope->half, section, err);
    interleave(axis, rope->half, section);
    return true;
}
