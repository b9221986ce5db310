/* See target.h. */
#include "server/fleet/target.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/limits.h"
#include "weights/folder.h"
#include "weights/limits.h"

/* name: of a file of the model. NULL: there is no such file, or *err. */
static json_t *read_json(const char *dir, const char *name, mt_error *err)
{
    json_t *json = NULL;
    mt_folder_file file;

    if (!mt_folder_has(dir, name) || !mt_folder_open(&file, dir, name, err))
        return NULL;
    if (file.len <= MT_LIMIT_CONFIG_BYTES)
        json = json_loadb(file.data, file.len, 0, NULL);
    if (!json)
        mt_fail(err, MT_E_INVALID, "\"%.200s/%.200s\" is not JSON; download it again", dir, name);
    mt_folder_close(&file);
    return json;
}

static const struct {
    const char *flag, *name;
    mt_pool pool;
} modes[] = {{"pooling_mode_cls_token", "cls", MT_POOL_FIRST},
             {"pooling_mode_mean_tokens", "mean", MT_POOL_MEAN},
             {"pooling_mode_lasttoken", "lasttoken", MT_POOL_LAST}};

/* Older files have a flag for each way of pooling, newer ones name one. */
static void read_pooling(mt_target *t, const char *dir, const char *folder)
{
    char name[MT_LIMIT_PATH];
    json_t *config = snprintf(name, sizeof(name), "%s%sconfig.json", folder, *folder ? "/" : "") < (int)sizeof(name)
                         ? read_json(dir, name, &t->unfit)
                         : NULL;
    const char *named = json_string_value(json_object_get(config, "pooling_mode"));
    const char *flag;
    json_t *value;
    size_t set = 0;
    bool known = false;

    json_object_foreach(config, flag, value)
        set += strncmp(flag, "pooling_mode_", strlen("pooling_mode_")) == 0 && json_is_true(value);
    for (size_t i = 0; i < MT_COUNT(modes); i++)
        if (named ? strcmp(named, modes[i].name) == 0
                  : set == 1 && json_is_true(json_object_get(config, modes[i].flag))) {
            t->pool = modes[i].pool;
            known = true;
        }
    if (!known && t->unfit.code == MT_OK)
        mt_fail(
            &t->unfit, MT_E_UNSUPPORTED,
            "\"%.100s/config.json\" pools neither the first, the last nor the mean of all tokens; use another model",
            folder);
    json_decref(config);
}

void mt_target_read_labels(mt_target *t, const char *dir)
{
    mt_error err = {0};
    json_t *config = read_json(dir, "config.json", &err);
    const json_t *names = json_object_get(config, "id2label");
    const char *type = json_string_value(json_object_get(config, "problem_type"));
    char key[24];

    t->apart = t->width == 1 || (type && strcmp(type, "multi_label_classification") == 0);
    t->labels = json_array();
    for (size_t i = 0; i < t->width; i++) {
        snprintf(key, sizeof(key), "%zu", i);
        json_t *name = json_object_get(names, key);

        if (json_is_string(name))
            json_array_append(t->labels, name);
        else
            json_array_append_new(t->labels, json_sprintf("LABEL_%zu", i));
    }
    json_decref(config);
}

/* Whether a text ends with another. */
static bool ends(const char *type, const char *with)
{
    const size_t len = strlen(type), tail = strlen(with);

    return len >= tail && strcmp(type + len - tail, with) == 0;
}

/* Notes the folder of a dense layer. */
static void add_dense(mt_target *t, const char *path)
{
    size_t i = 0;

    while (i < MT_BERT_AFTER && t->dense[i][0])
        i++;
    if (t->number == 0)
        mt_fail(&t->unfit, MT_E_UNSUPPORTED, "modules.json has dense layers, which are known behind encoders only");
    else if (i == MT_BERT_AFTER || t->normalise || !*path || strlen(path) >= sizeof(t->dense[i]) || strstr(path, ".."))
        mt_fail(&t->unfit, MT_E_UNSUPPORTED,
                "modules.json has the dense layer \"%.100s\" where none is known; at most %d are, before vectors are "
                "normalised",
                path, MT_BERT_AFTER);
    else
        memcpy(t->dense[i], path, strlen(path) + 1);
}

/* Reads the texts that may stand in front of a text, and which one does where nobody chooses. */
static void read_prompts(mt_target *t, const char *dir)
{
    json_t *config = read_json(dir, "config_sentence_transformers.json", &t->unfit);
    json_t *prompts = json_object_get(config, "prompts");
    const char *name = json_string_value(json_object_get(config, "default_prompt_name"));

    if (json_is_object(prompts))
        t->prompts = json_incref(prompts);
    if (name)
        t->prompt = json_string_value(json_object_get(t->prompts, name));
    json_decref(config);
}

void mt_target_clear(mt_target *t)
{
    json_decref(t->prompts);
    t->prompts = NULL;
    t->prompt = NULL;
}

void mt_target_read(mt_target *t, const char *dir)
{
    json_t *modules = read_json(dir, "modules.json", &t->unfit);

    if (!modules)
        return;
    t->normalise = false;
    t->embeds = true;
    read_prompts(t, dir);
    for (size_t i = 0; i < json_array_size(modules) && t->unfit.code == MT_OK; i++) {
        const json_t *module = json_array_get(modules, i);
        const char *type = json_string_value(json_object_get(module, "type"));
        const char *path = json_string_value(json_object_get(module, "path"));

        if (type && path && ends(type, ".Pooling") && !strstr(path, ".."))
            read_pooling(t, dir, path);
        else if (type && ends(type, ".Normalize"))
            t->normalise = true;
        else if (type && path && ends(type, ".Dense"))
            add_dense(t, path);
        else if (!type || !ends(type, ".Transformer"))
            mt_fail(&t->unfit, MT_E_UNSUPPORTED,
                    "modules.json has \"%.100s\", which is not known here; use another model", type ? type : "");
    }
    json_decref(modules);
}
