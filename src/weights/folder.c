/* Files of a model (folder.h). Nothing is kept: a GGUF file is opened again for each text that is made of it, which
   takes milliseconds and happens a few times when a model is opened. */
#include "weights/folder.h"

#include <stdio.h>
#include <string.h>

#include "weights/gguf_arch.h"
#include "weights/gguf_place.h"
#include "weights/gguf_tokenizer.h"

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
    {"chat_template.jinja", has_template, make_template, MT_LIMIT_TEMPLATE_BYTES},
    {"additional_chat_templates/tool_use.jinja", has_tool_template, make_tool_template, MT_LIMIT_TEMPLATE_BYTES},
};

/* Where a file is looked for. */
typedef struct source {
    char path[MT_LIMIT_PATH]; /* the file itself; the GGUF file where it is made */
    mt_gguf *g;               /* open where it is made */
    size_t row;               /* of the table */
} source;

static bool join(char out[MT_LIMIT_PATH], const char *folder, size_t len, const char *name, mt_error *err)
{
    const int all = snprintf(out, MT_LIMIT_PATH, "%.*s/%s", (int)len, folder, name);
    return (all > 0 && all < MT_LIMIT_PATH) || mt_fail(err, MT_E_INVALID, "the path of \"%s\" is too long", name);
}

static size_t row_of(const char *name)
{
    size_t row = 0;
    while (row < MT_COUNT(made) && strcmp(made[row].name, name) != 0)
        row++;
    return row;
}

/* A file of a GGUF model: made, or beside it. */
static bool find_made(source *s, const mt_gguf_place *place, const char *name, mt_error *err)
{
    const char *slash = strrchr(place->model, '/');
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
    return join(s->path, slash ? place->model : ".", slash ? (size_t)(slash - place->model) : 1, name, err);
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
    mt_gguf_close(s.g);
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
        mt_buf_init(&file->made, made[s->row].limit);
        ok = made[s->row].make(s->g, &file->made, err) || mt_fail_within(err, "\"%s\"", s->path);
        file->data = file->made.data ? file->made.data : "";
        file->len = file->made.len;
    }
    mt_gguf_close(s->g);
    s->g = NULL;
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

void mt_folder_source(char out[MT_LIMIT_PATH], const char *path, const char *name)
{
    source s;
    (void)!find(&s, path, name, NULL);
    mt_gguf_close(s.g);
    memcpy(out, s.path, MT_LIMIT_PATH);
}
