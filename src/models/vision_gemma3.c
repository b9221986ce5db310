/* Gemma 3's vision: SigLIP over square pictures of one size, whose tokens all see each other in the text model. */
#include <math.h>

#include "models/family.h"
#include "models/vision_family.h"

/* Pan and scan: how long a picture must be to be shown in pieces, the least side of a piece, and most pieces.
   Checkpoints have files with these numbers, too, but transformers ignores them, and so does this. */
#define CROP_RATIO 1.2
#define CROP_LEAST 256u
#define CROPS 4u

/* mm_tokens_per_image is beside vision_config, not in it. */
static bool read_pool(mt_vision_spec *v, const mt_config *config, mt_error *err)
{
    uint32_t tokens;
    if (!mt_size_read(config, "mm_tokens_per_image", 256, 1 << 16, &tokens, err))
        return false;
    const uint32_t side = (uint32_t)sqrt(tokens);
    if (side * side != tokens || v->table % side)
        return mt_fail(err, MT_E_INVALID, "\"mm_tokens_per_image\" is %u, which %u x %u patches do not make", tokens,
                       v->table, v->table);
    v->merge = v->table / side;
    v->block = tokens;
    return true;
}

/* SigLIP; a token is the mean of a square of patches. */
static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    static const mt_siglip_sizes usual = {
        .hidden = 768, .ffn = 3072, .layers = 12, .heads = 12, .image = 224, .patch = 16};
    const mt_config *c = mt_config_object(config, "vision_config");
    (void)arena;
    *v = (mt_vision_spec){.frames = 1, .out = s->hidden, .bias = true, .patch_bias = true, .merge_kind = MT_MERGE_MEAN};
    return mt_siglip_read(v, c, &usual, err) && read_pool(v, config, err) &&
           mt_tower_activation_read(c, "hidden_act", "gelu_pytorch_tanh", &v->activation, err);
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    w->norm = mt_tower_norm(t, "vision.post_layernorm", s->hidden, &w->norm_bias);
    mt_bind_transposed(t->b, "projector.mm_input_projection_weight", s->out, s->hidden, &w->merger.down);
    w->merger.norm = mt_bind_vector(t->b, "projector.mm_soft_emb_norm", s->hidden);
}

static bool read_processor(const mt_settings *s)
{
    static const double half[3] = {0.5, 0.5, 0.5};
    mt_processor *p = s->p;
    const mt_vision_spec *v = s->spec->vision;
    const int64_t side = (int64_t)v->table * v->patch;
    const mt_config *size = s->image ? mt_config_object(s->image, "size") : NULL;
    int64_t height = side, width = side;
    if (!mt_settings_levels(s, s->image, half, half, MT_RESAMPLE_BILINEAR, &p->image) ||
        (size && (!mt_config_int(size, "height", side, 1, 1 << 16, &height, s->err) ||
                  !mt_config_int(size, "width", side, 1, 1 << 16, &width, s->err))))
        return false;
    if (height != side || width != side)
        return mt_fail(s->err, MT_E_INVALID,
                       "the processor makes images of %d x %d pixels, the tower takes %d x %d; they must be of one "
                       "model",
                       (int)width, (int)height, (int)side, (int)side);
    p->image.height = p->image.width = (uint32_t)side;
    p->patches = (size_t)v->table * v->table * (1 + CROPS);
    p->image_marker = p->opening = mt_settings_token(s, "boi_token", "<start_of_image>");
    /* GGUF files may have no token of that name, and another one instead */
    p->image_pad = s->image ? mt_config_string(s->image, "image_token", "<image_soft_token>") : "<image_soft_token>";
    p->image_pad = mt_settings_token(s, "image_token", p->image_pad);
    p->closing = mt_settings_token(s, "eoi_token", "<end_of_image>");
    return true;
}

/* Number of pieces along the longer side; 0: none. */
static uint32_t crop_count(uint32_t lengthwise, uint32_t across)
{
    if ((double)lengthwise / across < CROP_RATIO)
        return 0;
    uint32_t count = (uint32_t)floor((double)lengthwise / across + 0.5);
    count = lengthwise / CROP_LEAST < count ? lengthwise / CROP_LEAST : count;
    count = count < 2 ? 2 : count;
    count = count > CROPS ? CROPS : count;
    const uint32_t piece = (lengthwise + count - 1) / count;
    return (piece < across ? piece : across) < CROP_LEAST ? 0 : count;
}

/* An image that is long in one direction is also shown in pieces. */
static bool make_views(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                       mt_error *err)
{
    const bool wide = image->width >= image->height;
    const uint32_t lengthwise = wide ? image->width : image->height, across = wide ? image->height : image->width;
    const uint32_t crops = order->wish.crops ? crop_count(lengthwise, across) : 0;
    const uint32_t piece = crops ? (lengthwise + crops - 1) / crops : 0;
    const mt_pixel_size size = {.height = p->image.height, .width = p->image.width};
    if (!mt_picture_new(p, &p->image, 1 + crops, size, 1, order, out, err) ||
        !mt_media_take(
            order->watch,
            (size_t)3 * across * piece + mt_picture_fill_memory(p, &p->image, image->height, image->width, out), err))
        return false;
    mt_picture_fill(p, &p->image, image, 0, 0, out);
    for (uint32_t i = 0; i < crops; i++) {
        const uint32_t begin = i * piece, length = begin + piece > lengthwise ? lengthwise - begin : piece;
        mt_image crop;
        mt_image_crop(&crop, image, wide ? begin : 0, wide ? 0 : begin, wide ? length : across, wide ? across : length);
        mt_picture_fill(p, &p->image, &crop, 1 + i, 0, out);
        mt_image_free(&crop);
    }
    return true;
}

static bool put_view(const mt_processor *p, const char *before, mt_buf *out)
{
    return mt_buf_printf(out, "%s\n\n%s%s%s\n\n", before, p->opening, p->image_pad, p->closing);
}

static bool text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    bool ok = put_view(p, picture->views == 1 ? "" : "Here is the original image ", out);
    (void)number;
    for (uint32_t i = 1; ok && i < picture->views; i++)
        ok = put_view(p, i == 1 ? " and here are some crops to help you see better " : " ", out);
    return ok;
}

const mt_vision_family mt_vision_gemma3 = {.read_tower = read_tower,
                                           .names = MT_SIGLIP_NAMES,
                                           .bind = bind,
                                           .read_processor = read_processor,
                                           .image_id = 262144,
                                           .image = make_views,
                                           .text = text,
                                           .run = mt_picture_view_tokens};
