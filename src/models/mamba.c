/* What configs of models with Mamba2 have in common (family.h). */
#include <float.h>
#include <math.h>

#include "device/limits.h"
#include "models/family.h"
#include "weights/limits.h"

static float bound(double value)
{
    return value > FLT_MAX ? INFINITY : (float)value;
}

/* Reads the bounds of a token's time step: a list of two, whose second one may be infinite. */
static void read_bounds(mt_mamba_spec *m, const mt_config *c)
{
    static const char key[] = "time_step_limit";
    m->low = 0;
    m->high = INFINITY;
    if (mt_config_array(c, key) < 2)
        return;
    m->low = bound(mt_config_array_float(c, key, 0, 0));
    m->high = bound(mt_config_array_float(c, key, 1, INFINITY));
}

bool mt_mamba_read(mt_model_spec *spec, const mt_config *c, const mt_mamba_keys *keys, mt_error *err)
{
    int64_t heads, dim, groups, state, taps;
    if (!mt_config_int(c, keys->heads, keys->usual_heads, 1, MT_LIMIT_STATE_HEADS, &heads, err))
        return false;
    const int64_t usual = keys->width ? keys->width / heads : keys->usual_dim;
    const bool said = mt_config_has(c, keys->head_dim) && !mt_config_string(c, keys->head_dim, NULL); /* else "auto" */
    dim = usual;
    if ((said && !mt_config_int(c, keys->head_dim, usual, 1, MT_LIMIT_HEAD_DIM, &dim, err)) ||
        !mt_config_int(c, keys->groups, keys->usual_groups, 1, heads, &groups, err) ||
        !mt_config_int(c, keys->state, keys->usual_state, 1, MT_LIMIT_HEAD_DIM, &state, err) ||
        !mt_config_int(c, keys->taps, 4, 2, MT_LIMIT_CONV_TAPS, &taps, err))
        return false;
    if (heads % groups)
        return mt_fail(err, MT_E_INVALID, "\"%s\" is %d, which is no multiple of \"%s\" %d", keys->heads, (int)heads,
                       keys->groups, (int)groups);
    if (dim < 1 || dim > MT_LIMIT_HEAD_DIM || (keys->width && heads * dim != keys->width))
        return mt_fail(err, MT_E_INVALID, "%d heads of %d elements do not make a layer of Mamba2 of width %u",
                       (int)heads, (int)dim, keys->width);
    spec->state = (mt_state_shape){.key_heads = (size_t)groups,
                                   .value_heads = (size_t)heads,
                                   .key_dim = (size_t)state,
                                   .value_dim = (size_t)dim,
                                   .taps = (size_t)taps,
                                   .plain = true};
    spec->mamba.groups = (uint32_t)groups;
    spec->mamba.conv_bias = mt_config_bool(c, keys->conv_bias, true);
    read_bounds(&spec->mamba, c);
    return true;
}
