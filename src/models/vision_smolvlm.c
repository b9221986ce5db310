/* The vision of SmolVLM and of Idefics3, from which it comes: SigLIP over squares. A picture is enlarged to whole
   tiles, cut into them, and shown whole, too. SmolVLM also takes videos, whose frames are shown whole and described in
   words. */
#include <math.h>

#include "media/limits.h"
#include "models/family.h"
#include "models/limits.h"
#include "models/vision_family.h"

#define MOST_PIXELS 4096 /* most pixels of a side, whatever the files say */

static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    static const mt_siglip_sizes usual = {
        .hidden = 1152, .ffn = 3072, .layers = 12, .heads = 16, .image = 224, .patch = 32};
    const mt_config *c = mt_config_object(config, "vision_config");
    (void)arena;
    *v = (mt_vision_spec){
        .frames = 1, .out = s->hidden, .bias = true, .patch_bias = true, .spread = MT_SPREAD_STEPS, .middle = 1};
    return mt_siglip_read(v, c, &usual, err) && mt_size_read(config, "scale_factor", 2, 8, &v->merge, err) &&
           mt_tower_activation_read(c, "hidden_act", "gelu_pytorch_tanh", &v->activation, err);
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    w->merger.norm = mt_tower_norm(t, "vision.post_layernorm", s->hidden, &w->merger.norm_bias);
    mt_bind_matrix(t->b, "projector.modality_projection.proj", s->out, (size_t)s->merge * s->merge * s->hidden,
                   &w->merger.down);
}

static bool read_edge(const mt_settings *s, const mt_config *c, const char *key, int64_t fallback, uint32_t *out)
{
    const mt_config *size = c ? mt_config_object(c, key) : NULL;
    *out = (uint32_t)fallback;
    return !size || mt_size_read(size, "longest_edge", fallback, 1 << 14, out, s->err);
}

static const double half[3] = {0.5, 0.5, 0.5};

/* Reads how many frames are used, and at what rate; where the files say neither, all are used. */
static bool read_pace(const mt_settings *s, const mt_config *c)
{
    mt_processor *p = s->p;
    const mt_config *sampling = c ? mt_config_object(c, "video_sampling") : NULL, *from = sampling ? sampling : c;
    const uint32_t along = p->tiles.side / p->patch;
    int64_t frames = 0;
    p->max_frames = MT_LIMIT_PATCHES / (along * along);
    p->max_frames = p->max_frames ? p->max_frames : 1;
    if (from &&
        (!mt_config_int(from, sampling ? "max_frames" : "num_frames", 0, 0, MT_LIMIT_MEDIA_FRAMES, &frames, s->err) ||
         !mt_config_float(from, "fps", 0, 0, 1000, &p->fps, s->err)))
        return false;
    p->video_frames = (uint32_t)frames;
    p->sample = frames > 0 || p->fps > 0;
    return true;
}

/* Frames are resized by torchvision, which uses bicubic where Lanczos is asked for (before 0.27). */
static bool read_video(const mt_settings *s)
{
    mt_processor *p = s->p;
    const mt_config *c = s->video;
    uint32_t side;
    if (!c && !mt_settings_file(s, "preprocessor_config.json", &c)) /* published folders have one file for both */
        return false;
    const mt_config *sampling = c ? mt_config_object(c, "video_sampling") : NULL;
    const bool own = sampling && !mt_config_object(c, "size");
    if (!read_edge(s, own ? sampling : c, own ? "video_size" : "size", p->image.width, &p->video.width) ||
        !read_edge(s, c, "max_image_size", p->tiles.side, &side) ||
        !mt_settings_levels(s, c, half, half, MT_RESAMPLE_LANCZOS, &p->video) || !read_pace(s, c))
        return false;
    if (p->video.resample == MT_RESAMPLE_LANCZOS)
        p->video.resample = MT_RESAMPLE_BICUBIC;
    return side == p->tiles.side ||
           mt_fail(s->err, MT_E_INVALID, "\"max_image_size\" of videos is %u, of images %u; it must be the same", side,
                   p->tiles.side);
}

static bool read_pictures(const mt_settings *s)
{
    mt_processor *p = s->p;
    if (!read_edge(s, s->image, "size", INT64_C(4) * 364, &p->image.width) ||
        !read_edge(s, s->image, "max_image_size", 364, &p->tiles.side) ||
        !mt_settings_levels(s, s->image, half, half, MT_RESAMPLE_LANCZOS, &p->image))
        return false;
    if (p->tiles.side % (p->patch * p->merge))
        return mt_fail(s->err, MT_E_INVALID, "\"max_image_size\" is %u, no multiple of a token's %u pixels",
                       p->tiles.side, p->patch * p->merge);
    const size_t along = p->tiles.side / p->patch, most = (p->image.width - 1) / p->tiles.side + 2;
    p->tiles.thumbnail = true;
    p->tiles.most = !s->image || mt_config_bool(s->image, "do_image_splitting", true) ? (uint32_t)(most * most) : 1;
    p->patches = p->tiles.most * along * along;
    p->image_marker = p->image_pad = mt_settings_token(s, "image_token", "<image>");
    p->opening = p->closing = mt_settings_token(s, "fake_image_token", "<fake_token_around_image>");
    p->row_end = mt_settings_token(s, "global_image_token", "<global-img>");
    return true;
}

static bool read_processor(const mt_settings *s)
{
    mt_processor *p = s->p;
    if (!read_pictures(s))
        return false;
    p->video_pad = p->image_pad;
    p->video_marker = mt_settings_token(s, "video_token", "<video>");
    return read_video(s);
}

/* The longer side becomes `longest`, the other an even number of pixels. */
static mt_pixel_size lengthen(double height, double width, double longest)
{
    const double ratio = width / height;
    double h = longest, w = longest;
    if (width >= height)
        h = floor(w / ratio);
    else
        w = floor(h * ratio);
    h = fmax(width >= height && fmod(h, 2) != 0 ? h + 1 : h, 1);
    w = fmax(width < height && fmod(w, 2) != 0 ? w + 1 : w, 1);
    const double now = w / h;
    if (w >= h && w > MOST_PIXELS) {
        w = MOST_PIXELS;
        h = fmax(floor(w / now), 1);
    } else if (h > w && h > MOST_PIXELS) {
        h = MOST_PIXELS;
        w = fmax(floor(h * now), 1);
    }
    return (mt_pixel_size){.height = (uint32_t)h, .width = (uint32_t)w};
}

/* Whole tiles: the longer side is rounded up, the other follows from the picture's shape. */
static void choose_grid(mt_pixel_size size, double side, uint32_t *across, uint32_t *down)
{
    const double ratio = (double)size.width / size.height;
    if (size.width >= size.height) {
        *across = (uint32_t)ceil(size.width / side);
        *down = (uint32_t)fmax(ceil(floor(*across * side / ratio) / side), 1);
    } else {
        *down = (uint32_t)ceil(size.height / side);
        *across = (uint32_t)fmax(ceil(floor(*down * side * ratio) / side), 1);
    }
}

static bool resize(const mt_processor *p, const mt_image *in, uint32_t width, uint32_t height,
                   const mt_picture_order *order, mt_image *out, mt_error *err)
{
    const mt_resample resample = p->image.resample;
    if (!mt_media_take(order->watch, mt_image_resize_memory(in->width, in->height, width, height, resample), err))
        return false;
    mt_image_resize(out, in, width, height, resample);
    return true;
}

static bool cut(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                mt_error *err)
{
    const mt_pixel_size tile = {p->tiles.side, p->tiles.side};
    uint32_t across, down;
    choose_grid((mt_pixel_size){image->height, image->width}, tile.width, &across, &down);
    if (across * down == 1)
        return mt_picture_tiles(p, &p->image, image, tile, 1, 1, order, out, err);
    mt_image whole;
    if (!resize(p, image, across * tile.width, down * tile.height, order, &whole, err))
        return false;
    const bool ok = mt_picture_tiles(p, &p->image, &whole, tile, across, down, order, out, err) &&
                    mt_picture_tiles(p, &p->image, &whole, tile, 1, 1, order, out + 1, err);
    out->more = 1;
    mt_image_free(&whole);
    return ok;
}

/* A request with a small max_pixels gets only the whole picture. */
static bool make_views(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                       mt_error *err)
{
    const mt_picture_wish *wish = &order->wish;
    const mt_pixel_size tile = {p->tiles.side, p->tiles.side};
    const mt_pixel_size size = lengthen(image->height, image->width, p->image.width);
    const bool few = wish->low || (wish->max_pixels && wish->max_pixels < (uint64_t)size.width * size.height);
    mt_image longer;
    if (!resize(p, image, size.width, size.height, order, &longer, err))
        return false;
    const bool ok = p->tiles.most > 1 && !few ? cut(p, &longer, order, out, err)
                                              : mt_picture_tiles(p, &p->image, &longer, tile, 1, 1, order, out, err);
    mt_image_free(&longer);
    return ok;
}

static mt_pixel_size lengthen_frame(const mt_processor *p, uint32_t height, uint32_t width)
{
    return lengthen(height, width, fmin(p->video.width, MOST_PIXELS));
}

static bool fit(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width, uint32_t frames,
                mt_pixel_size *out, mt_error *err)
{
    (void)wish, (void)height, (void)width, (void)frames, (void)err;
    *out = (mt_pixel_size){p->tiles.side, p->tiles.side};
    return true;
}

/* Frames at a rate, up to a number, evenly from the first to the last. Of a long video the first and last second are
   skipped; its length is computed as transformers does, as frames times frames per second. */
static void choose(mt_frame_choice *c, double wanted, bool fixed)
{
    const mt_processor *p = c->p;
    const double total = (double)c->total, seconds = total / c->fps, room = p->max_frames;
    const double pace = fixed ? p->fps : wanted / seconds, most = fixed             ? wanted
                                                                  : p->video_frames ? p->video_frames
                                                                                    : room;
    const double count = fmax(fmin(fmin(pace > 0 ? rint(pace * seconds) : most, most), room), 1);
    double first = 0, last = total - 1;
    if (pace > 0 && seconds - 2 > most * pace && floor(c->fps) < fmin(floor(total - c->fps), last)) {
        first = floor(c->fps);
        last = fmin(floor(total - c->fps), last);
    }
    const double step = count > 1 ? (last - first) / (count - 1) : 0;
    c->count = 0;
    for (double i = 0; i < count; i++) {
        const int64_t index = (int64_t)(i > 0 && i == count - 1 ? last : floor(i * step + first));
        if (c->count == 0 || index != c->index[c->count - 1])
            c->index[c->count++] = index;
    }
}

static bool say_below_hundred(mt_buf *out, uint32_t n)
{
    static const char *const small[] = {
        "zero", "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
        "ten",  "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
    static const char *const tens[] = {"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
    if (n < 20)
        return mt_buf_printf(out, "%s", small[n]);
    return mt_buf_printf(out, "%s%s%s", tens[n / 10 - 2], n % 10 ? "-" : "", n % 10 ? small[n % 10] : "");
}

static bool say_below_thousand(mt_buf *out, uint32_t n)
{
    const uint32_t rest = n % 100;
    if (n < 100)
        return say_below_hundred(out, n);
    return say_below_hundred(out, n / 100) && mt_buf_printf(out, " hundred%s", rest ? " and " : "") &&
           (rest == 0 || say_below_hundred(out, rest));
}

/* A number in words; there are fewer than a million frames. */
static bool say(mt_buf *out, uint32_t n)
{
    const uint32_t rest = n % 1000;
    if (n < 1000)
        return say_below_thousand(out, n);
    return say_below_thousand(out, n / 1000) &&
           mt_buf_printf(out, " thousand%s",
                         rest == 0    ? ""
                         : rest < 100 ? " and "
                                      : ", ") &&
           (rest == 0 || say_below_thousand(out, rest));
}

static bool tell_video(const mt_processor *p, const mt_picture *picture, mt_buf *out)
{
    const uint32_t seconds = (uint32_t)picture->seconds, hours = seconds / 3600, days = hours / 24;
    bool ok = mt_buf_printf(out, "You are provided the following series of ") && say(out, picture->views) &&
              mt_buf_printf(out, " frames from a ") &&
              (days == 0 || mt_buf_printf(out, "%u day%s, ", days, days > 1 ? "s" : "")) &&
              mt_buf_printf(out, "%u:%02u:%02u [H:MM:SS] video.\n", hours % 24, seconds / 60 % 60, seconds % 60);
    for (uint32_t i = 0; ok && i < picture->views; i++) {
        const uint32_t time = (uint32_t)picture->times[i];
        ok = mt_buf_printf(out, "\nFrame from %02u:%02u:%s%s%s%s", time / 60, time % 60, p->opening, p->row_end,
                           p->image_pad, p->closing);
    }
    return ok && mt_buf_printf(out, "\n\n");
}

static bool text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    bool ok = true;
    (void)number;
    if (picture->video)
        return tell_video(p, picture, out);
    for (uint32_t i = 0; ok && picture->more && i < picture->views; i++)
        ok = mt_buf_printf(out, "%s<row_%u_col_%u>%s%s", p->opening, i / picture->across + 1, i % picture->across + 1,
                           p->image_pad, (i + 1) % picture->across ? "" : "\n");
    return ok && mt_buf_printf(out, "%s%s%s%s%s", picture->more ? "\n" : "", p->opening, p->row_end, p->image_pad,
                               p->closing);
}

/* Published templates do not know videos: transformers has one of its own for conversations with videos. */
#define VIDEO_TEMPLATE                                                                                         \
    "{{ '<|im_start|>' }}{% for message in messages %}{% set parts = message.content %}"                       \
    "{{ message.role | capitalize + ':' }}"                                                                    \
    "{% if parts is string %}{{ ' ' + parts }}{% else %}{% if parts[0].type != 'image' %}{{ ' ' }}{% endif %}" \
    "{% for part in parts %}{% if part.type == 'text' %}{{ part.text }}{% elif part.type == 'image' %}"        \
    "{{ '<image>' }}{% elif part.type == 'video' %}{{ '<video>' }}{% endif %}{% endfor %}{% endif %}"          \
    "{{ '<end_of_utterance>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"

const mt_vision_family mt_vision_idefics3 = {.read_tower = read_tower,
                                             .names = MT_SIGLIP_NAMES,
                                             .bind = bind,
                                             .read_processor = read_pictures,
                                             .image_id = 128257,
                                             .size = fit,
                                             .image = make_views,
                                             .text = text,
                                             .run = mt_picture_view_tokens};

const mt_vision_family mt_vision_smolvlm = {.read_tower = read_tower,
                                            .names = MT_SIGLIP_NAMES,
                                            .bind = bind,
                                            .read_processor = read_processor,
                                            .image_id = 128257,
                                            .size = fit,
                                            .image = make_views,
                                            .choose = choose,
                                            .before = lengthen_frame,
                                            .video_template = VIDEO_TEMPLATE,
                                            .text = text,
                                            .run = mt_picture_view_tokens,
                                            .one_pad = true,
                                            .early = true};
