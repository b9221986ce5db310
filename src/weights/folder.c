/* Files of a model (folder.h). Nothing is kept: a GGUF file is opened again for each text that is made of it, which
   reads its header again unless a caller holds it open, as the checkpoint does while a model is opened. */
#include "weights/folder.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "weights/gguf_arch.h"
#include "weights/gguf_place.h"
#include "weights/gguf_projector.h"
#include "weights/gguf_tokenizer.h"
#include "weights/limits.h"

static bool has_config(const mt_gguf *g)
{
    (void)g;
    return true;
}

static bool has_template(const mt_gguf *g)
{
    return mt_gguf_has_template(g, NULL);
}

static bool make_template(const mt_gguf *g, mt_buf *out, mt_error *err)
{
    return mt_gguf_template(g, NULL, out, err);
}

static bool has_tool_template(const mt_gguf *g)
{
    return mt_gguf_has_template(g, "tool_use");
}

static bool make_tool_template(const mt_gguf *g, mt_buf *out, mt_error *err)
{
    return mt_gguf_template(g, "tool_use", out, err);
}

/* Files that are made of a GGUF file's keys, where it has these keys. Others may be beside it. */
static const struct {
    const char *name;
    bool (*has)(const mt_gguf *g);
    bool (*make)(const mt_gguf *g, mt_buf *out, mt_error *err);
    size_t limit;
} made[] = {
    {"config.json", has_config, mt_gguf_config, MT_LIMIT_CONFIG_BYTES},
    {"tokenizer.json", mt_gguf_has_tokenizer, mt_gguf_tokenizer, MT_LIMIT_TOKENIZER_BYTES},
    {"tokenizer_config.json", mt_gguf_has_tokenizer, mt_gguf_tokenizer_config, MT_LIMIT_CONFIG_BYTES},
    {"generation_config.json", mt_gguf_has_tokenizer, mt_gguf_generation_config, MT_LIMIT_CONFIG_BYTES},
    {"modules.json", mt_gguf_has_pooling, mt_gguf_modules, MT_LIMIT_CONFIG_BYTES},
    {"1_Pooling/config.json", mt_gguf_has_pooling, mt_gguf_pooling, MT_LIMIT_CONFIG_BYTES},
    {"chat_template.jinja", has_template, make_template, MT_LIMIT_TEMPLATE_BYTES},
    {"additional_chat_templates/tool_use.jinja", has_tool_template, make_tool_template, MT_LIMIT_TEMPLATE_BYTES},
};

/* Files that are made of two GGUF files, where one is a projector: config.json and, unless they lie beside the model,
   the settings of pictures. */
static const struct {
    const char *name;
    bool settings; /* of pictures: where one of these lies beside the model, none is made */
    bool (*make)(const mt_gguf *text, const mt_gguf *projector, mt_buf *out, mt_error *err);
} seen[] = {
    {"config.json", false, mt_gguf_projector_config},
    {"preprocessor_config.json", true, mt_gguf_projector_images},
    {"video_preprocessor_config.json", true, mt_gguf_projector_videos},
    {"processor_config.json", true, NULL},
};

/* Where a file is looked for. */
typedef struct source {
    char path[MT_LIMIT_PATH]; /* the file itself; the GGUF file where it is made */
    mt_gguf *g;               /* open where it is made */
    mt_gguf *projector;       /* the same where it is made of both */
    size_t row;               /* of the table `made`, or of `seen` */
} source;

static bool join(char out[MT_LIMIT_PATH], const char *folder, size_t len, const char *name, mt_error *err)
{
    const int all = snprintf(out, MT_LIMIT_PATH, "%.*s/%s", (int)len, folder, name);
    return (all > 0 && all < MT_LIMIT_PATH) || mt_fail(err, MT_E_INVALID, "the path of \"%s\" is too long", name);
}

static bool join_beside(char out[MT_LIMIT_PATH], const mt_gguf_place *place, const char *name, mt_error *err)
{
    const char *slash = strrchr(place->model, '/');
    return join(out, slash ? place->model : ".", slash ? (size_t)(slash - place->model) : 1, name, err);
}

static size_t row_of(const char *name)
{
    size_t row = 0;
    while (row < MT_COUNT(made) && strcmp(made[row].name, name) != 0)
        row++;
    return row;
}

static size_t seen_row_of(const char *name)
{
    size_t row = 0;
    while (row < MT_COUNT(seen) && strcmp(seen[row].name, name) != 0)
        row++;
    return row;
}

static void close_source(source *s)
{
    mt_gguf_close(s->g);
    mt_gguf_close(s->projector);
    s->g = s->projector = NULL;
}

/* Whether settings of pictures lie beside the model. */
static bool has_settings(const mt_gguf_place *place)
{
    char path[MT_LIMIT_PATH];
    for (size_t i = 0; i < MT_COUNT(seen); i++)
        if (seen[i].settings && join_beside(path, place, seen[i].name, NULL) && !mt_file_absent(path))
            return true;
    return false;
}

/* Whether a file is made of the model and its projector. */
static bool is_seen(const mt_gguf_place *place, size_t row)
{
    return place->projector[0] && row < MT_COUNT(seen) && seen[row].make &&
           !(seen[row].settings && has_settings(place));
}

/* A file that is made of the model and its projector. */
static bool find_seen(source *s, const mt_gguf_place *place, mt_error *err)
{
    memcpy(s->path, place->projector, sizeof(s->path));
    s->g = mt_gguf_open(place->model, err);
    s->projector = s->g ? mt_gguf_open(place->projector, err) : NULL;
    if (!s->projector)
        close_source(s);
    return s->projector != NULL;
}

/* A file of a GGUF model: made, or beside it. */
static bool find_made(source *s, const mt_gguf_place *place, const char *name, mt_error *err)
{
    s->row = seen_row_of(name);
    if (is_seen(place, s->row))
        return find_seen(s, place, err);
    s->row = row_of(name);
    if (s->row < MT_COUNT(made)) {
        s->g = mt_gguf_open(place->model, err);
        if (!s->g)
            return false;
        memcpy(s->path, place->model, sizeof(s->path));
        if (made[s->row].has(s->g))
            return true;
        mt_gguf_close(s->g);
        s->g = NULL;
    }
    return join_beside(s->path, place, name, err);
}

static bool find(source *s, const char *path, const char *name, mt_error *err)
{
    mt_gguf_place place;
    mt_error why = {0};
    *s = (source){.path = ""};
    if (mt_gguf_locate(&place, path, NULL, &why))
        return find_made(s, &place, name, err);
    if (why.code != MT_OK) {
        if (err)
            *err = why;
        return false;
    }
    return join(s->path, path, strlen(path), name, err);
}

bool mt_folder_has(const char *path, const char *name)
{
    source s;
    const bool has = !find(&s, path, name, NULL) || s.g || !mt_file_absent(s.path);
    close_source(&s);
    return has;
}

/* Opens what was found, and closes its GGUF file. */
static bool open_found(mt_folder_file *file, source *s, mt_error *err)
{
    bool ok;
    *file = (mt_folder_file){.data = ""};
    if (!s->g) {
        ok = mt_file_map(&file->map, s->path, err);
        file->data = file->map.data ? file->map.data : "";
        file->len = file->map.size;
    } else {
        mt_buf_init(&file->made, s->projector ? MT_LIMIT_CONFIG_BYTES : made[s->row].limit);
        ok = (s->projector ? seen[s->row].make(s->g, s->projector, &file->made, err)
                           : made[s->row].make(s->g, &file->made, err)) ||
             mt_fail_within(err, "\"%s\"", s->path);
        file->data = file->made.data ? file->made.data : "";
        file->len = file->made.len;
    }
    close_source(s);
    if (!ok)
        mt_folder_close(file);
    return ok;
}

bool mt_folder_open(mt_folder_file *file, const char *path, const char *name, mt_error *err)
{
    source s;
    return find(&s, path, name, err) && open_found(file, &s, err);
}

void mt_folder_close(mt_folder_file *file)
{
    mt_file_unmap(&file->map);
    mt_buf_free(&file->made);
}

mt_config *mt_folder_config(const char *path, const char *name, mt_error *err)
{
    mt_folder_file file;
    mt_config *config = NULL;
    source s;
    mt_error_clear(err);
    if (!find(&s, path, name, err) || (!s.g && mt_file_absent(s.path)))
        return NULL;
    if (!s.g)
        return mt_config_read(s.path, err);
    if (open_found(&file, &s, err)) {
        config = mt_config_parse(file.data, file.len, err);
        if (!config)
            mt_fail_within(err, "\"%s\"", s.path);
        mt_folder_close(&file);
    }
    return config;
}

void mt_folder_hold(mt_folder_held *held, const char *path)
{
    mt_gguf_place place;
    *held = (mt_folder_held){0};
    if (!mt_gguf_locate(&place, path, NULL, NULL))
        return;
    held->model = mt_gguf_open(place.model, NULL); /* if it cannot be opened, the function that needs it will say why */
    if (held->model && place.projector[0])
        held->projector = mt_gguf_open(place.projector, NULL);
}

void mt_folder_release(mt_folder_held *held)
{
    mt_gguf_close(held->model);
    mt_gguf_close(held->projector);
    *held = (mt_folder_held){0};
}

void mt_folder_source(char out[MT_LIMIT_PATH], const char *path, const char *name)
{
    mt_gguf_place place;
    source s;
    if (mt_gguf_locate(&place, path, NULL, NULL) && row_of(name) < MT_COUNT(made)) { /* without reading all its keys */
        memcpy(out, place.model, MT_LIMIT_PATH);
        return;
    }
    (void)!find(&s, path, name, NULL);
    close_source(&s);
    memcpy(out, s.path, MT_LIMIT_PATH);
}
